import { isReplicaCluster, pendingPromotionToken } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { annotations } from "../../api/labels.ts";
import { parseFencing } from "../../api/markers.ts";
import { type Phase, phases } from "../../api/phases.ts";
import { replicaConditions, replicaConditionTexts, replicaTransition } from "../../api/replica-conditions.ts";
import { parseControlData, shutDownStates } from "../../postgres/control-data.ts";
import { buildPromotionToken } from "../../postgres/promotion-token.ts";
import { type ClusterStatus, findCondition, withCondition, withoutCondition } from "./conditions.ts";
import type { PolledInstance } from "./observed.ts";
import { flushStatus, type Pass, recordEvent, setPhase, type Wait } from "./pass.ts";

/** What the primary of a cluster that is being demoted told of its control file. */
export type ObservedControlData = { kind: "read"; text: string } | { kind: "unknown"; reason: string };

/** How long until a primary that is being stopped is looked at again, in milliseconds. */
const stopPollMs = 10_000;

/** The instance whose control data the next step of a demotion is decided from; `undefined` when none is needed. */
export function wantsControlData(cluster: Cluster): string | undefined {
  if (!isReplicaCluster(cluster) || replicaTransition(cluster) !== "completed" || !isWhollyFenced(cluster)) {
    return undefined;
  }
  return cluster.status?.currentPrimary;
}

/**
 * Turns a primary cluster into one that follows another (reference: cluster controller §6.8): every instance is fenced, the
 * primary makes itself a standby, the token that tells where it stopped is written, and the fence is lifted.
 */
export function planReplicaTransition(pass: Pass, sorted: readonly PolledInstance[]): Wait | null {
  const state = replicaTransition({ status: pass.status });
  // The cluster may be wanted as a primary one again before the change was through.
  if (!isReplicaCluster(pass.cluster)) return state === "none" ? null : endTransition(pass, "abandoned");
  switch (state) {
    case "none":
      return beginTransition(pass, sorted);
    case "asked":
      // Lifted too early it would let the primary start again before it became a standby.
      if (!isWhollyFenced(pass.cluster)) planFence(pass);
      return null;
    case "completed":
      return concludeTransition(pass);
  }
}

function beginTransition(pass: Pass, sorted: readonly PolledInstance[]): Wait | null {
  const { currentPrimary } = pass.status;
  const primary = sorted.find((it) => it.name === currentPrimary);
  if (primary?.kind !== "answered" || !primary.status.isPrimary) return null;
  const { begun, switchBegun } = replicaConditionTexts;
  let status: ClusterStatus = { ...pass.status, switchReplicaClusterStatus: { inProgress: true } };
  status = withCondition(status, { type: replicaConditions.transition, status: "False", ...begun }, pass.now);
  status = withCondition(status, { type: replicaConditions.fencing, status: "True", ...begun }, pass.now);
  status = withCondition(status, { type: replicaConditions.switch, status: "False", ...switchBegun }, pass.now);
  pass.status = status;
  flushStatus(pass, switchBegun.message);
  planFence(pass);
  return { requeueAfterMs: 1_000, because: `${primary.name} is to become the designated primary` };
}

function concludeTransition(pass: Pass): Wait {
  const { controlData } = pass.observed;
  const primary = pass.status.currentPrimary ?? "";
  // Lifted by somebody else: the primary runs, or soon will, and its control file tells nothing any more.
  if (!isWhollyFenced(pass.cluster)) {
    if (!pass.status.demotionToken) {
      const message = "The fence was lifted before the demotion token was made, so there is none";
      recordEvent(pass, "Warning", "DemotionTokenMissing", message);
    }
    return endTransition(pass, "completed");
  }
  if (controlData?.kind !== "read") {
    const reason = controlData?.reason ?? "it was not asked";
    return { requeueAfterMs: stopPollMs, because: `the control data of ${primary} are not known: ${reason}` };
  }
  const control = parseControlData(controlData.text);
  if (!shutDownStates.includes(control.state ?? "")) {
    const because = `${primary} was not shut down in order yet: its state is "${control.state ?? "unknown"}"`;
    return { requeueAfterMs: stopPollMs, because };
  }
  const token = buildPromotionToken(control, pass.observed.operator.context.operatorVersion);
  if (token === undefined || control.redoWalFile === undefined) {
    return { requeueAfterMs: stopPollMs, because: `the control data of ${primary} lack what a token is made of` };
  }
  if (token !== pass.status.demotionToken) {
    const reason = `the segment in which ${primary} stopped is to be in the archive`;
    pass.actions.push({ kind: "archivePartialWal", instance: primary, wal: control.redoWalFile, reason });
    pass.status = { ...pass.status, demotionToken: token };
    flushStatus(pass, `${primary} stopped at ${control.redoLsn ?? ""}`);
  }
  return endTransition(pass, "completed");
}

/** The fence goes first: without the conditions nobody would lift it any more. */
function endTransition(pass: Pass, how: "completed" | "abandoned"): Wait {
  const isOurs = findCondition(pass.status, replicaConditions.fencing)?.status === "True";
  if (isOurs && isWhollyFenced(pass.cluster)) {
    const patch = { metadata: { annotations: { [annotations.fencedInstances]: null } } };
    pass.actions.push({ kind: "patchCluster", patch, reason: "the change of the replica cluster is through" });
  }
  const { switchReplicaClusterStatus: _, ...rest } = pass.status;
  let status: ClusterStatus = { ...rest, switchReplicaClusterStatus: {} };
  status = withoutCondition(withoutCondition(status, replicaConditions.transition), replicaConditions.fencing);
  if (how === "abandoned") {
    pass.status = withoutCondition(status, replicaConditions.switch);
    return { requeueAfterMs: 1_000, because: "the cluster is a primary cluster again" };
  }
  const { switchDone } = replicaConditionTexts;
  pass.status = withCondition(status, { type: replicaConditions.switch, status: "True", ...switchDone }, pass.now);
  return { requeueAfterMs: 1_000, because: switchDone.message };
}

function planFence(pass: Pass): void {
  if (isWhollyFenced(pass.cluster)) return;
  const patch = { metadata: { annotations: { [annotations.fencedInstances]: JSON.stringify(["*"]) } } };
  pass.actions.push({ kind: "patchCluster", patch, reason: "the cluster becomes a replica cluster" });
}

function isWhollyFenced(cluster: Cluster): boolean {
  return parseFencing(cluster).kind === "all";
}

/** While an instance waits for the point that a promotion token names, nothing else is done (reference: I14). */
export function waitForReplicaPromotion(pass: Pass): Wait | null {
  if (pendingPromotionToken({ ...pass.cluster, status: pass.status }) === undefined) return null;
  const keeps: (Phase | undefined | string)[] = [phases.promotingReplicaCluster, phases.unrecoverable];
  const because = "Replica cluster promotion in progress";
  if (!keeps.includes(pass.status.phase)) setPhase(pass, phases.promotingReplicaCluster, because);
  return { requeueAfterMs: 1_000, because };
}
