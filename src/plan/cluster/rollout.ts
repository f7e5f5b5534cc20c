import { annotations } from "../../api/labels.ts";
import { isFenced, parseFencing } from "../../api/markers.ts";
import { phases } from "../../api/phases.ts";
import { refTo } from "./actions.ts";
import { planPodDeletion } from "./healing.ts";
import type { AnsweredInstance, PolledInstance } from "./observed.ts";
import { flushStatus, type Pass, recordEvent, setPhase, setTargetPrimary, type Wait } from "./pass.ts";
import { lacksArchiver, type RolloutReason, rolloutReason } from "./rollout-reason.ts";
import { rolloutDelayMs } from "./rollout-slot.ts";

/**
 * Replaces pods that differ from what the cluster asks for, one at a time: the replica that lags most first, the primary
 * last (reference: cluster controller §5.8). Only instances that answered in this pass are touched.
 */
export function planRollout(pass: Pass, sorted: readonly PolledInstance[]): Wait | null {
  const fencing = parseFencing(pass.cluster);
  const answered = sorted.filter((it): it is AnsweredInstance => it.kind === "answered");
  const candidates = answered.filter((it) => !isFenced(fencing, it.name));
  for (const instance of [...candidates].reverse()) {
    if (instance.name === pass.status.currentPrimary) continue;
    const reason = rolloutReason(pass, instance);
    if (reason)
      return (
        takeSlot(pass, instance) ??
        replacePod(pass, instance, `Restarting instance ${instance.name}, because: ${reason.text}`)
      );
  }
  const primary = candidates.find((it) => it.name === pass.status.currentPrimary);
  const reason = primary ? rolloutReason(pass, primary) : null;
  if (primary && reason) {
    const wait = rollPrimary(pass, primary, reason, answered);
    if (wait) return wait;
  }
  const lowered = answered.find((it) => it.status.pendingRestartForDecrease);
  if (lowered) return { requeueAfterMs: 1_000, because: `${lowered.name} waits to apply lowered settings` };
  const upgrading = answered.find((it) => it.status.isInstanceManagerUpgrading);
  if (upgrading) return { requeueAfterMs: 1_000, because: `${upgrading.name} replaces its instance manager` };
  return null;
}

function takeSlot(pass: Pass, instance: AnsweredInstance): Wait | null {
  const { rolloutSlot, operator } = pass.observed;
  const key = `${pass.cluster.metadata.namespace}/${pass.cluster.metadata.name}`;
  const delayMs = rolloutDelayMs(rolloutSlot, key, operator, pass.now);
  if (delayMs === 0) return null;
  const because = `Rollout of pod ${instance.name} have been delayed for ${Math.ceil(delayMs / 1_000)}s`;
  if (pass.cluster.status?.phase !== phases.upgradeDelayed) recordEvent(pass, "Normal", "RolloutDelayed", because);
  setPhase(
    pass,
    phases.upgradeDelayed,
    "The cluster need to be update, but the operator is configured to delay the operation",
  );
  return { requeueAfterMs: Math.min(15_000, delayMs), because };
}

/** The slot is taken first: two clusters that saw it free at the same time must not both go on. */
function planSlot(pass: Pass, instance: string, podUid: string, reason: string): void {
  const { operator, rolloutSlot } = pass.observed;
  if (operator.instancesRolloutDelayMs <= 0 && operator.clustersRolloutDelayMs <= 0) return;
  pass.actions.push({ kind: "takeRolloutSlot", instance, podUid, seenAtMs: rolloutSlot?.atMs, reason });
}

function replacePod(pass: Pass, instance: AnsweredInstance, phaseReason: string): Wait {
  setPhase(pass, phases.upgrading, phaseReason);
  return deleteForRollout(pass, instance, phaseReason);
}

function deleteForRollout(pass: Pass, instance: AnsweredInstance, reason: string): Wait {
  recordEvent(pass, "Normal", "UpgradingInstance", `Upgrading instance ${instance.name}`);
  planSlot(pass, instance.name, instance.pod.metadata.uid ?? "", reason);
  flushStatus(pass, reason);
  planPodDeletion(pass, instance.pod, reason);
  return { requeueAfterMs: 1_000, because: reason };
}

function rollPrimary(
  pass: Pass,
  primary: AnsweredInstance,
  reason: RolloutReason,
  answered: readonly AnsweredInstance[],
): Wait | null {
  if (primary.status.pendingRestartForDecrease) return null;
  if ((pass.cluster.spec.primaryUpdateStrategy ?? "unsupervised") === "supervised") {
    // A person asked for it by this very phase, and the instance answers it.
    if (pass.status.phase === phases.inPlacePrimaryRestart) {
      return { requeueAfterMs: 1_000, because: `primary ${primary.name} is to restart in place` };
    }
    setPhase(pass, phases.waitingForUser, "User must issue a supervised switchover");
    return { because: `primary ${primary.name} waits for a supervised switchover: ${reason.text}` };
  }
  const denied = takeSlot(pass, primary);
  if (denied) return denied;
  const isAlone = pass.cluster.spec.instances <= 1;
  const method = pass.cluster.spec.primaryUpdateMethod ?? "restart";
  if (method === "restart" && reason.inPlace) return restartInPlace(pass, primary, reason.text);
  if (isAlone) {
    return replacePod(
      pass,
      primary,
      `The primary instance needs to be restarted: ${primary.name}, reason: ${reason.text}`,
    );
  }
  if (method === "restart" || lacksArchiver(pass, primary.pod)) {
    setPhase(pass, phases.inPlaceDeletePrimaryRestart, reason.text);
    return deleteForRollout(pass, primary, reason.text);
  }
  return switchOver(pass, primary, reason.text, answered);
}

function restartInPlace(pass: Pass, primary: AnsweredInstance, reason: string): Wait {
  const restartedAt = pass.cluster.metadata.annotations?.[annotations.restartedAt];
  if (restartedAt && primary.pod.metadata.annotations?.[annotations.restartedAt] !== restartedAt) {
    const patch = { metadata: { annotations: { [annotations.restartedAt]: restartedAt } } };
    pass.actions.push({ kind: "patch", target: refTo(primary.pod), patch, bestEffort: false, reason });
  }
  setPhase(pass, phases.inPlacePrimaryRestart, reason);
  return { requeueAfterMs: 1_000, because: reason };
}

function switchOver(
  pass: Pass,
  primary: AnsweredInstance,
  reason: string,
  answered: readonly AnsweredInstance[],
): Wait {
  const successor = answered.find((it) => it.name !== primary.name);
  if (!successor?.status.isWalReceiverActive) {
    return { requeueAfterMs: 5_000, because: `no replica of ${primary.name} is streaming, so it cannot hand over` };
  }
  const message = `Initiating switchover to ${successor.name} to upgrade ${primary.name}`;
  recordEvent(pass, "Normal", "Switchover", message);
  setPhase(pass, phases.upgrading, reason);
  setTargetPrimary(pass, successor.name);
  planSlot(pass, primary.name, "", message);
  flushStatus(pass, message);
  return { requeueAfterMs: 1_000, because: message };
}

/**
 * Instances that run the same manager must have loaded the same configuration before anything is rolled; groups of
 * different managers compute their hashes differently and are compared only within themselves.
 */
export function planConfigurationGate(_pass: Pass, sorted: readonly PolledInstance[]): Wait | null {
  const answered = sorted.filter((it): it is AnsweredInstance => it.kind === "answered");
  if (answered.some((it) => !it.status.loadedConfigurationHash)) return null;
  const byManager = new Map<string, Set<string>>();
  for (const it of answered) {
    const image = it.pod.spec?.initContainers?.find((init) => init.name === "bootstrap-controller")?.image ?? "";
    const key = `${image} ${it.status.executableHash}`;
    const hashes = byManager.get(key) ?? new Set();
    byManager.set(key, hashes.add(it.status.loadedConfigurationHash ?? ""));
  }
  const isMixed = [...byManager.values()].some((hashes) => hashes.size > 1);
  return isMixed ? { requeueAfterMs: 1_000, because: "instances have not loaded the same configuration yet" } : null;
}
