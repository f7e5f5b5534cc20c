/** What is known when the postmaster has ended without being asked to. */
export interface PostmasterExitView {
  /** A stop is under way, so the end was expected. */
  stopping: boolean;
  isPrimary: boolean;
  me: string;
  current: string;
  /** Name of the target primary; `undefined` while it is pending or unset. */
  target: string | undefined;
  /** Whether this instance's right to write is still good. */
  leaseHeld: boolean;
  /** Whether a whole WAL segment can still be written. */
  walSpace: "enough" | "full" | "unknown";
  /** Monotonic times, in milliseconds, of the unexpected ends before this one. */
  earlier: readonly number[];
  now: number;
}

export type PostmasterExitDecision =
  | { kind: "expected" }
  /** Start PostgreSQL again in this container (ADR 0003). */
  | { kind: "restart"; reason: string }
  /** End the container with this code. */
  | { kind: "exit"; code: number; reason: string };

/** Restarts in place that are allowed within {@link restartWindowMs}. */
export const restartsAllowed = 3;
export const restartWindowMs = 5 * 60_000;

/** Exit code of a container whose WAL volume is full. */
const diskFull = 4;

/** Decides between starting PostgreSQL again in place and ending the container. */
export function planPostmasterExit(view: PostmasterExitView): PostmasterExitDecision {
  if (view.stopping) return { kind: "expected" };
  if (view.walSpace === "full") return { kind: "exit", code: diskFull, reason: "no free disk space for WAL" };
  const recent = view.earlier.filter((at) => view.now - at < restartWindowMs).length;
  if (recent >= restartsAllowed) {
    return {
      kind: "exit",
      code: 1,
      reason: `PostgreSQL ended ${recent + 1} times within ${restartWindowMs / 60_000} minutes`,
    };
  }
  if (!view.isPrimary) return { kind: "restart", reason: "a standby accepts no writes" };
  if (view.target !== view.me || view.current !== view.me) {
    return { kind: "exit", code: 1, reason: "this instance is not current and target primary any more" };
  }
  if (!view.leaseHeld) return { kind: "exit", code: 1, reason: "the primary lease is not held" };
  return { kind: "restart", reason: "this instance still holds the primary lease" };
}
