import { dirname } from "node:path";
import { type BootstrapTargetAction, planBootstrapTarget } from "../../plan/instance/bootstrap-target.ts";
import type { InstanceContext } from "../instance-context.ts";

/** Stands beside PGDATA, which pg_basebackup wants empty, while a copy of the primary is not finished. */
function copyMarker(context: InstanceContext): string {
  return `${dirname(context.paths.pgData)}/.cnpg-ts.copying`;
}

/**
 * Marks the target as an unfinished copy, so that the next attempt need not keep it. A recovery's server runs on the copy
 * before it is whole; what it wrote comes from the archive again.
 */
export async function markCopy(context: InstanceContext, kind: "copy" | "recovery" = "copy"): Promise<void> {
  await context.files.writeAtomic(copyMarker(context), kind === "copy" ? "" : kind, 0o600);
}

/** The copy is whole: from here on it is data. */
export function unmarkCopy(context: InstanceContext): Promise<void> {
  return context.files.remove(copyMarker(context));
}

async function carryOut(context: InstanceContext, folder: string, action: BootstrapTargetAction): Promise<void> {
  const { files, logger } = context;
  if (action.kind === "remove") {
    logger.info("Removing a folder that a failed attempt left", { folder, reason: action.reason });
    await files.remove(folder, { recursive: true });
  } else if (action.kind === "rename") {
    const renamed = await freeName(context, `${folder}_${action.suffix}`);
    logger.info("Putting an existing folder aside", { folder, renamed, reason: action.reason });
    await files.rename(folder, renamed);
  }
}

/** The name, or the name with a number where two attempts fall into one second. */
async function freeName({ files }: InstanceContext, name: string): Promise<string> {
  let candidate = name;
  for (let number = 2; await files.exists(candidate); number += 1) candidate = `${name}_${number}`;
  return candidate;
}

/** Makes room for a new data folder: data that may be someone's is put aside, the rest of a failed attempt removed. */
export async function clearTarget(context: InstanceContext): Promise<void> {
  const { files, paths, data, clock, settings } = context;
  // An empty folder is as good as none for initdb and pg_basebackup.
  const exists = (await files.list(paths.pgData)).length > 0;
  const walFolder = settings.pgWal;
  const walThere = walFolder !== undefined && (await files.exists(walFolder));
  const marker = await files.read(copyMarker(context));
  const isRecovery = marker === "recovery";
  const plan = planBootstrapTarget({
    data: !exists ? "absent" : (await data.isAccepted()) ? "valid" : "refused",
    controlFile: await data.controlFile(),
    wal: !walThere ? "absent" : (await files.list(walFolder)).length === 0 ? "empty" : "filled",
    unfinishedCopy: marker !== undefined,
    // pg_basebackup never copies this file, so it comes from a postmaster here.
    started: !isRecovery && (await files.exists(`${paths.pgData}/postmaster.opts`)),
    now: clock.now(),
  });
  await carryOut(context, paths.pgData, plan.data);
  if (walFolder !== undefined) await carryOut(context, walFolder, plan.wal);
  if (isRecovery) await clearTablespaces(context);
  await unmarkCopy(context);
}

/** A restore wants the folders of tablespaces empty too. */
async function clearTablespaces({ files, settings, logger }: InstanceContext): Promise<void> {
  if (!(await files.exists(settings.tablespaces))) return;
  for (const name of await files.list(settings.tablespaces)) {
    const folder = `${settings.tablespaces}/${name}/data`;
    if (!(await files.exists(folder))) continue;
    logger.info("Removing what a failed recovery left in a tablespace", { folder });
    await files.remove(folder, { recursive: true });
  }
}
