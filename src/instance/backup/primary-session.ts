import { switchWal } from "../../archive/base/switch-wal.ts";
import type { ArchiverFacts } from "../../plan/instance/archiving-check.ts";
import type { SqlSession } from "../../ports/sql-session.ts";
import type { InstanceContext } from "../instance-context.ts";
import { withSession } from "../local-sql.ts";
import { withSource } from "../reconcile/source-server.ts";

/** Works in a session on the cluster's primary: over the own socket when that is this instance, else as standbys reach it. */
export async function onPrimary<T>(
  context: InstanceContext,
  work: (session: SqlSession) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  if ((await context.data.role()) === "primary") return withSession(context, "postgres", work, { signal });
  const { primaryHost: host, primaryPort: port } = context.settings;
  return withSource(context, { host, port, signal }, work);
}

const archiverFacts = `
  SELECT coalesce(last_archived_wal, '') AS archived, (extract(epoch FROM last_archived_time) * 1000)::float8 AS archived_ms,
         coalesce(last_failed_wal, '') AS failed, (extract(epoch FROM last_failed_time) * 1000)::float8 AS failed_ms
    FROM pg_stat_archiver`;

/** How archiving goes on the primary. */
export function readArchiver(context: InstanceContext, signal: AbortSignal): Promise<ArchiverFacts> {
  return onPrimary(
    context,
    async (session) => {
      const [row = {}] = await session.query(archiverFacts);
      const ms = (value: unknown) => (value === null || value === undefined ? undefined : Number(value));
      return {
        lastArchivedWal: String(row["archived"] ?? ""),
        lastArchivedMs: ms(row["archived_ms"]),
        lastFailedWal: String(row["failed"] ?? ""),
        lastFailedMs: ms(row["failed_ms"]),
      };
    },
    signal,
  );
}

/** Makes the primary close its current segment; with a checkpoint before, where it can be asked for, there is something in it. */
export function closePrimarySegment(
  context: InstanceContext,
  options: { checkpoint?: boolean; signal: AbortSignal },
): Promise<void> {
  return onPrimary(
    context,
    async (session) => {
      // Not the right of the role that standbys connect by; a switch alone serves there.
      if (options.checkpoint && (await context.data.role()) === "primary") await session.query("CHECKPOINT");
      await switchWal(session);
    },
    options.signal,
  );
}
