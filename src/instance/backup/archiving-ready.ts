import { type ArchivingVerdict, isArchivedUpTo, judgeArchiving } from "../../plan/instance/archiving-check.ts";
import { parseLsn } from "../../postgres/lsn.ts";
import { formatWalSegment, walSegmentOfLsn } from "../../postgres/wal-name.ts";
import type { InstanceContext } from "../instance-context.ts";
import { withSession } from "../local-sql.ts";
import { closePrimarySegment, onPrimary, readArchiver } from "./primary-session.ts";

/** PostgreSQL tries a failed segment again after a minute; the reference gives it ten of them. */
export const archivingPatienceMs = 10 * 60_000;
const lookMs = 5_000;

/**
 * Waits until WAL archiving works, so that the backup to come can be restored at all; fails when it does not. `onChange` hears when it
 * is found to fail, and when it works after that.
 */
export async function waitForArchiving(
  context: InstanceContext,
  onChange: (isFailing: boolean) => Promise<unknown>,
  signal: AbortSignal,
): Promise<void> {
  const { clock, logger } = context;
  const end = clock.monotonicMs() + archivingPatienceMs;
  let closed = false;
  let isFailing = false;
  for (;;) {
    let reason: string;
    let verdict: ArchivingVerdict | undefined;
    try {
      verdict = judgeArchiving(await readArchiver(context, signal));
      if (verdict.kind === "untried" && !closed) {
        await closePrimarySegment(context, { checkpoint: true, signal });
        closed = true;
      }
      reason = verdict.kind === "failing" ? verdict.reason : "no segment has been archived yet";
    } catch (error) {
      signal.throwIfAborted();
      reason = error instanceof Error ? error.message : String(error);
    }
    if (verdict && isFailing !== (verdict.kind === "failing")) {
      isFailing = !isFailing;
      await onChange(isFailing);
    }
    if (verdict?.kind === "working") return;
    if (clock.monotonicMs() > end) {
      throw new Error(
        `WAL archiving does not work, and a backup without its WAL cannot be restored: ${reason}; see condition ContinuousArchiving`,
      );
    }
    logger.info("WAL archiving is waited for before the backup starts", { reason });
    await clock.sleep(closed ? 500 : lookMs, signal);
  }
}

const positionFacts = `
  SELECT pg_is_in_recovery() AS recovering, pg_last_wal_replay_lsn()::text AS replayed,
         pg_size_bytes(current_setting('wal_segment_size'))::float8 AS segment_bytes,
         (SELECT timeline_id FROM pg_control_checkpoint()) AS timeline`;

/** How long the archive is waited for once the copy is there. */
export const walPatienceMs = 60 * 60_000;
const switchEveryMs = 10_000;

/**
 * Waits until the primary has archived everything up to the end of a backup and, where a standby was copied, up to what it had
 * replayed when the copy ended: the copied control file may demand it.
 */
export async function waitForArchivedEnd(context: InstanceContext, endWal: string, signal: AbortSignal): Promise<void> {
  const { clock, logger } = context;
  const needed = await neededWal(context, endWal);
  const begin = clock.monotonicMs();
  let switched = Number.NEGATIVE_INFINITY;
  for (let pause = 500; ; pause = Math.min(15_000, pause * 2)) {
    let last = "nothing";
    try {
      const facts = await readArchiver(context, signal);
      if (isArchivedUpTo(facts.lastArchivedWal, needed)) return;
      last = facts.lastArchivedWal || last;
      if (clock.monotonicMs() - switched > switchEveryMs) {
        switched = clock.monotonicMs();
        await closeIfOpen(context, needed, signal);
      }
    } catch (error) {
      signal.throwIfAborted();
      logger.warning("The primary could not be asked what it has archived", { error });
    }
    if (clock.monotonicMs() - begin > walPatienceMs) {
      throw new Error(
        `the archive lacks WAL that the backup needs: ${needed} is not archived, the last one was ${last}; check WAL archiving`,
      );
    }
    await clock.sleep(pause, signal);
  }
}

/** A segment that is closed already only waits for its turn. */
async function closeIfOpen(context: InstanceContext, needed: string, signal: AbortSignal): Promise<void> {
  const query = "SELECT pg_walfile_name(pg_current_wal_insert_lsn()) AS current";
  const [row] = await onPrimary(context, (session) => session.query(query), signal);
  if (String(row?.["current"] ?? "").slice(8) <= needed.slice(8)) await closePrimarySegment(context, { signal });
}

async function neededWal(context: InstanceContext, endWal: string): Promise<string> {
  const [row] = await withSession(context, "postgres", (session) => session.query(positionFacts));
  const replayed = row?.["recovering"] === true ? parseLsn(String(row["replayed"] ?? "")) : undefined;
  if (replayed === undefined) return endWal;
  const segment = walSegmentOfLsn(Number(row?.["timeline"] ?? 1), replayed, Number(row?.["segment_bytes"]));
  const name = formatWalSegment(segment);
  return name.slice(8) > endWal.slice(8) ? name : endWal;
}
