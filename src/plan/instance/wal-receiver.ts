/** What a standby's server says of its WAL receiver. */
export interface ReceiverView {
  /** Whether the primary has just changed. */
  primaryChanged: boolean;
  streaming: boolean;
  /** Seconds since its process was started; `undefined` when there is none. */
  ageSeconds: number | undefined;
}

/** `reload`: PostgreSQL is to try now. `terminate`: the attempt that is under way is given up, and PostgreSQL makes another. */
export type ReceiverRemedy = "none" | "reload" | "terminate";

/** How long a receiver may take to connect to a primary that has just changed, in seconds. */
const hurriedPatienceSeconds = 3;

/** How long it may take at any other time. */
const patienceSeconds = 30;

/**
 * Decides what helps a standby to find its primary.
 *
 * Without a receiver PostgreSQL tries again only every `wal_retrieve_retry_interval` (5 s). A receiver that reached a server which
 * stands still waits for its greeting without a limit, as libpq's `connect_timeout` does not apply to it: it would sit there for
 * as long as the former primary is frozen, and with synchronous replication hold up every commit of the new one.
 */
export function planReceiver(view: ReceiverView): ReceiverRemedy {
  if (view.streaming) return "none";
  if (view.ageSeconds === undefined) return view.primaryChanged ? "reload" : "none";
  const patience = view.primaryChanged ? hurriedPatienceSeconds : patienceSeconds;
  return view.ageSeconds > patience ? "terminate" : "none";
}
