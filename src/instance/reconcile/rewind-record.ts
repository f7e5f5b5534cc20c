import { dirname } from "node:path";
import { formatRewindRecord, parseRewindRecord, type RewindRecord } from "../../plan/instance/rewind.ts";
import type { InstanceContext } from "../instance-context.ts";

/** Beside PGDATA: pg_rewind removes what the source does not have. */
function recordPath(context: InstanceContext): string {
  return `${dirname(context.paths.pgData)}/.cnpg-ts.rewinding`;
}

/** The rewind that began on this volume and did not end, if there is one. */
export async function readRewindRecord(context: InstanceContext): Promise<RewindRecord | undefined> {
  const text = await context.files.read(recordPath(context));
  return text === undefined ? undefined : parseRewindRecord(text);
}

/** Notes it on disk; from here on nobody takes the folder for a server's. */
export async function writeRewindRecord(context: InstanceContext, record: RewindRecord): Promise<void> {
  await context.files.writeAtomic(recordPath(context), formatRewindRecord(record), 0o600);
}

/** The folder is a standby's, or untouched. */
export function removeRewindRecord(context: InstanceContext): Promise<void> {
  return context.files.remove(recordPath(context));
}
