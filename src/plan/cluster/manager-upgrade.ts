import { phases } from "../../api/phases.ts";
import { refTo } from "./actions.ts";
import type { AnsweredInstance, ManagerUpload, ObservedCluster, PolledInstance } from "./observed.ts";
import { flushStatus, lookAgain, type Pass, recordEvent, setPhase, type Wait } from "./pass.ts";

/** How long an instance may take to come back with the manager that it was sent, in milliseconds. */
const comebackLimitMs = 60_000;
/** Pauses before the next attempt: the first, doubled each time, and the longest, in milliseconds. */
const refusedPauses = { firstMs: 1_000, longestMs: 60_000 };
const failedPauses = { firstMs: 10_000, longestMs: 300_000 };
/** An instance that takes a backup is looked at this often, in milliseconds. */
const backupLookMs = 30_000;
/** A cluster that waits for a manager that nobody has is looked at this often, in milliseconds. */
const missingLookMs = 60_000;

/** Whether an instance runs an instance manager of ours, which can be replaced by what this operator sends. */
export function isOurs(instance: AnsweredInstance): boolean {
  return instance.status.cnpgTs !== undefined;
}

/** Whether the manager of a pod is being replaced right now, so that its silence means nothing. */
export function isManagerReplaced(pass: Pass, instance: PolledInstance): boolean {
  const upload = uploadOf(pass.observed, instance);
  if (upload?.kind === "sending") return true;
  return upload?.kind === "sent" && pass.now.getTime() - upload.atMs < comebackLimitMs;
}

/**
 * Sends this operator's instance manager to instances that run another one, one at a time, the replicas first and the primary
 * last (reference: cluster controller §5.8). PostgreSQL goes on meanwhile. What an instance puts off or refuses holds up those
 * after it and nothing else.
 */
export function planManagerUpgrade(pass: Pass, sorted: readonly PolledInstance[]): Wait | null {
  const answered = sorted.filter((it): it is AnsweredInstance => it.kind === "answered");
  forgetFinished(pass, answered);
  if (!pass.observed.operator.onlineUpdateEnabled || answered.some((it) => !it.status.executableHash)) return null;
  for (const instance of [...answered].reverse()) {
    if (!isOurs(instance) || instance.name === pass.status.currentPrimary) continue;
    const step = upgrade(pass, instance);
    if (step !== "current") return step;
  }
  const primary = answered.find((it) => it.name === pass.status.currentPrimary);
  const step = primary && isOurs(primary) ? upgrade(pass, primary) : "current";
  return step === "current" ? null : step;
}

function upgrade(pass: Pass, instance: AnsweredInstance): Wait | null | "current" {
  const { instanceArch, executableHash } = instance.status;
  const wanted = pass.observed.operator.architectures.find((it) => it.goArch === instanceArch);
  if (!wanted) {
    const reason = `encountered an error while upgrading the instance manager: invalid architecture: ${instanceArch}`;
    setPhase(pass, phases.architectureMissing, reason);
    return { requeueAfterMs: missingLookMs, because: reason };
  }
  if (executableHash === wanted.hash) return "current";
  const upload = uploadOf(pass.observed, instance);
  if (isManagerReplaced(pass, instance)) {
    setPhase(pass, phases.onlineUpgrading);
    return { requeueAfterMs: 1_000, because: `${instance.name} replaces its instance manager` };
  }
  if ((instance.status.cnpgTs?.backups ?? []).length > 0) {
    lookAgain(pass, backupLookMs);
    return null;
  }
  const pauseMs = pauseAfter(upload);
  const leftMs = upload && pauseMs > 0 ? upload.atMs + pauseMs - pass.now.getTime() : 0;
  if (leftMs > 0) {
    lookAgain(pass, leftMs);
    return null;
  }
  if (upload?.kind === "sent") reportFailure(pass, instance, wanted.hash, "it did not come back with what it was sent");
  return begin(pass, instance, wanted);
}

function begin(pass: Pass, instance: AnsweredInstance, wanted: { goArch: string; hash: string }): Wait {
  const because = `${instance.name} runs another instance manager than this operator has`;
  setPhase(pass, phases.onlineUpgrading);
  flushStatus(pass, because);
  const { goArch, hash } = wanted;
  const oldHash = instance.status.executableHash;
  pass.actions.push({ kind: "sendManager", target: refTo(instance.pod), goArch, hash, oldHash, reason: because });
  return { requeueAfterMs: 10_000, because };
}

/** An instance that reports the hash it was sent has taken over. */
function forgetFinished(pass: Pass, answered: readonly AnsweredInstance[]): void {
  for (const instance of answered) {
    const upload = uploadOf(pass.observed, instance);
    if (!upload || upload.kind === "sending" || instance.status.executableHash !== upload.hash) continue;
    const hashes = `(oldHash: ${upload.oldHash.slice(0, 6)} — newHash: ${upload.hash.slice(0, 6)})`;
    const message = `Instance manager has been upgraded on ${instance.name} ${hashes}`;
    recordEvent(pass, "Normal", "InstanceManagerUpgraded", message);
    pass.actions.push({ kind: "forgetManager", target: refTo(instance.pod), reason: message });
  }
}

function reportFailure(pass: Pass, instance: AnsweredInstance, hash: string, reason: string): void {
  recordEvent(pass, "Warning", "InstanceManagerUpgradeFailed", upgradeFailure(instance.name, hash, reason));
}

/** Message of the event about an instance whose manager could not be replaced. */
export function upgradeFailure(instance: string, hash: string, reason: string): string {
  return `Error while upgrading instance manager on ${instance} (hash: ${hash.slice(0, 6)}): ${reason}`;
}

function uploadOf(observed: ObservedCluster, instance: PolledInstance): ManagerUpload | undefined {
  return observed.managerUploads?.get(instance.pod.metadata.uid ?? "");
}

function pauseAfter(upload: ManagerUpload | undefined): number {
  if (upload?.kind !== "refused" && upload?.kind !== "failed") return 0;
  const { firstMs, longestMs } = upload.kind === "refused" ? refusedPauses : failedPauses;
  return Math.min(longestMs, firstMs * 2 ** Math.min(20, Math.max(0, upload.attempts - 1)));
}
