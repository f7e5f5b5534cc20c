import type { LeaseTimings } from "./lease.ts";

/**
 * The right to write as its holder knows it (safety protocol §1.2). All times are the holder's boot-time clock, in
 * milliseconds. It counts from the START of what proved it, because everybody else counts from when they heard of it.
 */
export interface WriteRight {
  /** Start of the last Lease write that succeeded, or of a later round in which every voter granted. */
  basis: number;
  /** `leaseTransitions` of the record that the right stands on. */
  transitions: number;
  /** Voters of the last write that is known to have succeeded. */
  voters: readonly string[];
  /** Voters of later writes whose outcome is not known: each of them may be allowed to take the Lease already. */
  maybeVoters: readonly string[];
}

export interface RightTimings {
  /** How long the right lasts. */
  rightMs: number;
  /** From here on PostgreSQL is being stopped at once, and nothing is started or promoted. */
  stopMs: number;
  /** Here the launcher kills every process of the pod. */
  killMs: number;
  /** Age of the right at which the voters are asked. */
  roundAfterMs: number;
  /** How long one round of questions may take. */
  roundLimitMs: number;
}

/** Times of the right, as parts of the Lease's renew deadline (10 s by default: stop at 7 s, kill at 9.5 s). */
export function compileRightTimings(lease: LeaseTimings): RightTimings {
  const rightMs = lease.renewDeadlineMs;
  return {
    rightMs,
    stopMs: rightMs * 0.7,
    killMs: rightMs * 0.95,
    roundAfterMs: Math.min(lease.retryPeriodMs + 500, rightMs * 0.4),
    roundLimitMs: Math.min(1_500, rightMs * 0.15),
  };
}

/** Everybody who may be allowed to take the Lease next, without the holder. */
export function votersToAsk(right: WriteRight, me: string): string[] {
  return [...new Set([...right.voters, ...right.maybeVoters])].filter((name) => name !== me).sort();
}

/** Nobody else may take the Lease, so the right does not end: a cluster of one is never isolated. */
export function isAlone(right: WriteRight, me: string): boolean {
  return right.voters.includes(me) && votersToAsk(right, me).length === 0;
}

export type RightState =
  /** Nothing was proved, or it is over: only a Lease write that succeeds brings it back. */
  | { kind: "none" }
  | { kind: "good"; leftMs: number }
  /** Too close to its end: PostgreSQL must be down before it. */
  | { kind: "ending"; leftMs: number };

/** What the right is worth at a moment. */
export function stateOfRight(
  right: WriteRight | undefined,
  view: { me: string; now: number; timings: RightTimings },
): RightState {
  if (!right) return { kind: "none" };
  if (isAlone(right, view.me)) return { kind: "good", leftMs: Number.POSITIVE_INFINITY };
  const ageMs = view.now - right.basis;
  const leftMs = view.timings.rightMs - ageMs;
  if (leftMs <= 0) return { kind: "none" };
  return { kind: ageMs < view.timings.stopMs ? "good" : "ending", leftMs };
}

/** Whether a right has not ended and it is known from which Lease it came: one that was adopted without a note tells only how long it lasts. */
export function isKnownTenure(
  right: WriteRight | undefined,
  view: { me: string; now: number; timings: RightTimings },
): boolean {
  return right !== undefined && right.transitions >= 0 && stateOfRight(right, view).kind !== "none";
}

/** Milliseconds from now after which the launcher has to kill; `undefined` = never. */
export function deadlineOfRight(
  right: WriteRight | undefined,
  view: { me: string; now: number; timings: RightTimings },
): number | undefined {
  if (!right || isAlone(right, view.me)) return undefined;
  // 0 would take the deadline away.
  return Math.max(1, right.basis + view.timings.killMs - view.now);
}

/**
 * The right as it is once a Lease write has been sent: its outcome may stay unknown for good, and so those whom it lists
 * count from here on.
 */
export function rightWhileWriting(
  right: WriteRight | undefined,
  write: { me: string; startedAt: number; voters: readonly string[] },
): WriteRight | undefined {
  if (!right) return undefined;
  // Until now nobody else could take the Lease, so the right is as fresh as if it had been proved at this moment.
  const basis = isAlone(right, write.me) ? write.startedAt : right.basis;
  return { ...right, basis, maybeVoters: [...new Set([...right.maybeVoters, ...write.voters])].sort() };
}

/** The right after a Lease write that succeeded; what earlier writes wanted can't come true any more. */
export function rightAfterWrite(write: {
  startedAt: number;
  voters: readonly string[];
  transitions: number;
}): WriteRight {
  return { basis: write.startedAt, transitions: write.transitions, voters: write.voters, maybeVoters: [] };
}

/** What a right stands on, without its age. */
export type RightGround = Pick<WriteRight, "transitions" | "voters" | "maybeVoters">;

/**
 * The right of a primary that an earlier runtime of this container started: what is left of it is told by the launcher's
 * deadline. Where nothing of its ground is remembered it names no voters, so that only a Lease write makes it longer. Without a
 * deadline nobody else could take the Lease, and that ends with the first write that lists another one, whatever becomes of it.
 */
export function adoptedRight(view: {
  me: string;
  deadlineMs: number | undefined;
  now: number;
  timings: RightTimings;
  ground?: RightGround | undefined;
}): WriteRight {
  if (view.deadlineMs === undefined) {
    return { basis: view.now, transitions: view.ground?.transitions ?? -1, voters: [view.me], maybeVoters: [] };
  }
  const basis = view.now + view.deadlineMs - view.timings.killMs;
  const { transitions, voters, maybeVoters } = view.ground ?? { transitions: -1, voters: [], maybeVoters: [] };
  return { basis, transitions, voters, maybeVoters };
}

/** One round of questions to the voters. */
export interface PromiseRound {
  startedAt: number;
  transitions: number;
  /** Those whose grant came back in time. */
  grantedBy: readonly string[];
}

/** The right after a round: longer when every voter granted and the right was held all the time, else as it was. */
export function rightAfterRound(
  right: WriteRight | undefined,
  round: PromiseRound,
  view: { me: string; now: number; timings: RightTimings },
): WriteRight | undefined {
  if (!right?.voters.includes(view.me) || round.transitions !== right.transitions) return right;
  if (stateOfRight(right, view).kind === "none") return right;
  if (!isAlone(right, view.me) && round.startedAt - right.basis >= view.timings.rightMs) return right;
  const granted = new Set(round.grantedBy);
  if (!votersToAsk(right, view.me).every((name) => granted.has(name))) return right;
  return { ...right, basis: Math.max(right.basis, round.startedAt) };
}

/** Whether the voters should be asked now: the Lease was not renewed in time, and there is still time to be granted. */
export function wantsRound(
  right: WriteRight | undefined,
  view: { me: string; now: number; timings: RightTimings },
): boolean {
  // Without a list nobody knows whom to ask.
  if (!right?.voters.includes(view.me) || isAlone(right, view.me)) return false;
  const ageMs = view.now - right.basis;
  return ageMs >= view.timings.roundAfterMs && ageMs < view.timings.rightMs;
}
