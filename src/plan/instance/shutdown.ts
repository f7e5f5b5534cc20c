import type { TargetPrimary } from "../../api/pg-status.ts";

/** PostgreSQL's ways to stop, from patient to brutal. */
export type StopMode = "smart" | "fast" | "immediate";

export const severity: Readonly<Record<StopMode, number>> = { smart: 0, fast: 1, immediate: 2 };

export interface StopStep {
  mode: StopMode;
  /** How long the postmaster may take before the next step; `undefined` on the last one. */
  limitMs: number | undefined;
}

export interface StopPlan {
  /** Longest wait for a CHECKPOINT beforehand, which shortens the one at shutdown; 0 = none. */
  checkpointMs: number;
  steps: readonly StopStep[];
}

/** Why PostgreSQL stops. */
export type StopCause =
  /** SIGTERM or SIGINT to the container. */
  | "signal"
  /** The same, and the kubelet kills in two seconds. */
  | "forced"
  /** Another instance is to be primary. */
  | "switchover"
  /** A new primary is being chosen because this one was given up. */
  | "failover"
  | "fence"
  | "restart"
  /** Someone else holds the primary lease. */
  | "leaseLost"
  /** API server and peers are out of reach. */
  | "isolated"
  | "error";

export interface StopView {
  cause: StopCause;
  isPrimary: boolean;
  stopDelayMs: number;
  smartShutdownMs: number;
  switchoverDelayMs: number;
}

/** Kept back of the pod's grace period, so that the last step and the release of the lease still fit. */
const marginMs = 10_000;
/** How long sessions, archiver and checkpoint may take when the kubelet kills two seconds after its signal. */
const forcedFastMs = 900;
/** A CHECKPOINT that takes longer than this gains nothing over the one at shutdown. */
const longestCheckpointMs = 30_000;

const forcedStop: StopPlan = {
  checkpointMs: 0,
  steps: [
    { mode: "fast", limitMs: forcedFastMs },
    { mode: "immediate", limitMs: undefined },
  ],
};

function smartThenFast(view: StopView): StopPlan {
  const totalMs = Math.max(1_000, view.stopDelayMs - Math.min(marginMs, view.stopDelayMs / 4));
  const smartMs = view.stopDelayMs <= view.smartShutdownMs ? 0 : Math.min(view.smartShutdownMs, totalMs);
  const fastMs = Math.max(1_000, totalMs - smartMs);
  const smart: StopStep[] = smartMs > 0 ? [{ mode: "smart", limitMs: smartMs }] : [];
  return {
    checkpointMs: view.isPrimary ? Math.min(longestCheckpointMs, totalMs / 4) : 0,
    steps: [...smart, { mode: "fast", limitMs: fastMs }, { mode: "immediate", limitMs: undefined }],
  };
}

function fastThenImmediate(view: StopView, checkpoint: boolean): StopPlan {
  return {
    checkpointMs: checkpoint && view.isPrimary ? Math.min(longestCheckpointMs, view.switchoverDelayMs / 4) : 0,
    steps: [
      { mode: "fast", limitMs: view.switchoverDelayMs },
      { mode: "immediate", limitMs: undefined },
    ],
  };
}

/** The ladder of stop modes for a cause; all steps of a signal share the pod's grace period as one deadline. */
export function planStop(view: StopView): StopPlan {
  switch (view.cause) {
    case "signal":
    case "restart":
      return smartThenFast(view);
    case "forced":
      // A standby has nothing to give back: for it the kill is as good as the stop.
      return view.isPrimary ? forcedStop : smartThenFast(view);
    case "switchover":
    case "fence":
    case "error":
      return fastThenImmediate(view, true);
    case "failover":
    case "isolated":
      return fastThenImmediate(view, false);
    case "leaseLost":
      return { checkpointMs: 0, steps: [{ mode: "immediate", limitMs: undefined }] };
    default: {
      const never: never = view.cause;
      throw new Error(`unknown cause ${String(never)}`);
    }
  }
}

/** Whether a plan ends PostgreSQL sooner than what is left of a stop that is in that mode. */
export function isHarder(plan: StopPlan, under: { mode: StopMode; limitMs: number | undefined }): boolean {
  const first = plan.steps[0];
  if (!first) return false;
  if (severity[first.mode] !== severity[under.mode]) return severity[first.mode] > severity[under.mode];
  return (first.limitMs ?? Number.POSITIVE_INFINITY) < (under.limitMs ?? Number.POSITIVE_INFINITY);
}

/** Whether a stop that is under way has to become harder, and how. */
export function planEscalation(view: {
  mode: StopMode;
  isPrimary: boolean;
  me: string;
  target: TargetPrimary;
  leaseLost: boolean;
  isolated: boolean;
}): { mode: StopMode; reason: string } | undefined {
  if (!view.isPrimary || view.mode === "immediate") return undefined;
  if (view.leaseLost) return { mode: "immediate", reason: "another instance holds the primary lease" };
  if (view.mode === "fast") return undefined;
  if (view.isolated) return { mode: "fast", reason: "neither the API server nor a peer can be reached" };
  const moved = view.target.kind === "pending" || (view.target.kind === "instance" && view.target.name !== view.me);
  return moved ? { mode: "fast", reason: "another instance is to be primary" } : undefined;
}
