import type { InstanceContext } from "../instance-context.ts";
import type { LocalSql } from "../local-sql.ts";

/** Pause between looks at the WAL receiver and at recovery. */
const receiverPollMs = 100;
const recoveryPollMs = 20;
/** A receiver that outlives this is looked at anew by the next pass, which reads the Cluster again. */
const receiverLimitMs = 60_000;

/** Waits until no WAL comes in any more, so that nothing of the old primary is missed. */
export async function waitForReceiverDown(
  context: InstanceContext,
  sql: LocalSql,
  signal: AbortSignal,
): Promise<boolean> {
  const end = context.clock.monotonicMs() + receiverLimitMs;
  while (context.clock.monotonicMs() < end) {
    signal.throwIfAborted();
    const [row] = await sql.query("SELECT 1 FROM pg_stat_wal_receiver LIMIT 1");
    if (!row) return true;
    await context.clock.sleep(receiverPollMs, signal);
  }
  context.logger.warning("The WAL receiver is still up; the promotion waits", { limitMs: receiverLimitMs });
  return false;
}

/**
 * Leaves recovery and resolves once the server takes writes. What was asked for can't be taken back, so the signal must be
 * that of the process: whoever gave up earlier would give the lease away while the server becomes a primary.
 */
export async function promoteServer(
  context: InstanceContext,
  sql: LocalSql,
  options: { timeoutSeconds: number | undefined; signal: AbortSignal },
): Promise<void> {
  const { clock, logger, data } = context;
  const { signal } = options;
  const started = clock.monotonicMs();
  const limitMs = (options.timeoutSeconds ?? 40_000_000) * 1000;
  logger.info("I'm the target primary, starting promotion");
  await sql.query("SELECT pg_promote(false)");
  for (;;) {
    signal.throwIfAborted();
    const row = await sql.one("SELECT pg_is_in_recovery() AS recovering");
    if (row["recovering"] === false) break;
    if (clock.monotonicMs() - started > limitMs) {
      throw new Error(`promotion did not end within ${options.timeoutSeconds} s (spec.postgresql.promotionTimeout)`);
    }
    await clock.sleep(recoveryPollMs, signal);
  }
  // The file goes away before recovery ends; a role read from files must not be older than the one read from SQL.
  if ((await data.role()) !== "primary") throw new Error("standby.signal is still there after the promotion");
  logger.info("The instance has been promoted", { durationMs: Math.round(clock.monotonicMs() - started) });
}

/** Ends sessions that began on a standby: their clients must see that they now talk to a primary. */
export async function dropClientSessions(sql: LocalSql): Promise<void> {
  await sql.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`,
  );
}
