import type { Cluster } from "../../api/generated/cluster.ts";
import { type Phase, phases } from "../../api/phases.ts";
import { createMergePatch } from "../../build/merge-patch.ts";
import type { ClusterAction } from "./actions.ts";
import { type ClusterStatus, conditionTypes, withCondition } from "./conditions.ts";
import type { ObservedCluster } from "./observed.ts";
import { formatMicroTime } from "./timestamps.ts";

/**
 * One pass being planned: the facts it starts from, the status it is building and the steps it has decided so far.
 * Stages add to it in order; nothing outside of the plan sees it.
 */
export interface Pass {
  readonly cluster: Cluster;
  readonly observed: ObservedCluster;
  readonly now: Date;
  readonly actions: ClusterAction[];
  /** The status as it will be. */
  status: ClusterStatus;
  /** The status as the last planned patch leaves it. */
  planned: ClusterStatus;
  /** The pass is to be repeated after at most this time, whatever stage ends it. */
  lookAgainMs: number | undefined;
  /** A failover is due once its delay is over: a primary without a pod gets none, or the failover would never come. */
  failoverDelayed: boolean;
}

/** A stage's wish to end the pass; `null` from a stage means: go on. */
export interface Wait {
  /** Look again after this many milliseconds even if nothing happens; absent = wait for an event. */
  requeueAfterMs?: number;
  because: string;
}

export type Stage = (pass: Pass) => Wait | null;

export function beginPass(cluster: Cluster, observed: ObservedCluster, now: Date): Pass {
  const status = cluster.status ?? {};
  const flags = { lookAgainMs: undefined, failoverDelayed: false };
  return { cluster, observed, now, actions: [], status, planned: status, ...flags };
}

/** Plans the write of what changed in the status since the last such step. */
export function flushStatus(pass: Pass, reason: string): void {
  const patch = createMergePatch({ ...pass.planned }, { ...pass.status });
  if (Object.keys(patch).length === 0) return;
  pass.actions.push({ kind: "patchStatus", patch, reason });
  pass.planned = pass.status;
}

/** Sets phase, reason and the condition Ready. */
export function setPhase(pass: Pass, phase: Phase, reason = ""): void {
  pass.status = withPhase(pass.status, phase, reason, pass.now);
}

/** A status with another phase; the condition Ready always goes with it. */
export function withPhase(status: ClusterStatus, phase: Phase, reason: string, now: Date): ClusterStatus {
  const { phaseReason: _, ...rest } = status;
  const next: ClusterStatus = { ...rest, phase, ...(reason ? { phaseReason: reason } : {}) };
  const type = conditionTypes.ready;
  return phase === phases.healthy
    ? withCondition(next, { type, status: "True", reason: "ClusterIsReady", message: "Cluster is Ready" }, now)
    : withCondition(next, { type, status: "False", reason: "ClusterIsNotReady", message: "Cluster Is Not Ready" }, now);
}

/** Plans an event on the Cluster. */
export function recordEvent(pass: Pass, type: "Normal" | "Warning", event: string, message: string): void {
  pass.actions.push({ kind: "event", type, event, message, reason: message });
}

/** Asks for another pass after at most this many milliseconds. */
export function lookAgain(pass: Pass, ms: number): void {
  pass.lookAgainMs = Math.min(ms, pass.lookAgainMs ?? ms);
}

/** The Cluster with the status as the pass has it by now, for builders. */
export function draftCluster(pass: Pass): Cluster {
  return { ...pass.cluster, status: pass.status };
}

/** Writes a new target of the primary role, with its time. */
export function setTargetPrimary(pass: Pass, target: string): void {
  const { currentPrimaryFailingSinceTimestamp: _, ...rest } = pass.status;
  pass.status = { ...rest, targetPrimary: target, targetPrimaryTimestamp: formatMicroTime(pass.now) };
}
