/** Least time that the right to write must last for its successor to renew it in peace, in milliseconds. */
const leastRightMs = 5_000;

/** What an instance is doing when another instance manager asks for its place. */
export interface UpgradeSituation {
  state: { restarting: boolean; rewinding: boolean; stopping: boolean };
  /** PostgreSQL is being started or stopped. */
  busy: boolean;
  /** Backups that this instance takes. */
  backups: number;
  /** Time until the launcher ends a primary whose right to write is not renewed, in milliseconds; absent = it has no such end. */
  deadlineMs: number | undefined;
}

/** Why an instance manager must not be replaced at this moment, in words; `undefined` when it may. */
export function findUpgradeObstacle({ state, busy, backups, deadlineMs }: UpgradeSituation): string | undefined {
  if (state.stopping) return "the instance is being stopped";
  if (state.rewinding) return "pg_rewind is running";
  if (state.restarting || busy) return "PostgreSQL is being started or stopped";
  if (backups > 0) return "a backup is being taken, which would be lost";
  if (deadlineMs !== undefined && deadlineMs < leastRightMs) return "the right to write has not been renewed just now";
  return undefined;
}
