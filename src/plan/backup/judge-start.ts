import type { Backup } from "../../api/generated/backup.ts";
import { annotations } from "../../api/labels.ts";
import type { PolledInstance } from "../cluster/observed.ts";
import { backupMethod } from "./prerequisites.ts";

/** What an operator knows of the start of a Backup that says `started`. */
export interface StartKnowledge {
  /** This process heard the pod say that it takes it. */
  accepted: boolean;
  /** This process asked, and no answer came; `mayHaveRun` when the pod may have got the question all the same. */
  unheard?: { reason: string; mayHaveRun: boolean };
}

/** What to do about a start that was claimed, in a pod that is still the same. */
export type StartVerdict =
  | { kind: "told"; because: string }
  | { kind: "ask"; because: string }
  | { kind: "wait"; afterMs: number; because: string }
  | { kind: "fail"; message: string };

/** How long an operator that is about to ask is given before its successor does, in milliseconds. */
export const claimPatienceMs = 120_000;
/** How long a question is repeated that no answer comes to. */
export const answerPatienceMs = 300_000;
/** How long a backup is believed in whose start nobody can confirm. */
export const silentBackupLimitMs = 24 * 3_600_000;
const againMs = 10_000;
const silentPauseMs = 30_000;

/**
 * Tells whether the pod knows of the backup. Our own instance managers list what they take and take each Backup once, so they
 * can be asked again at any time. Another one starts a second backup when it is asked twice: it is asked again only where the first
 * question cannot have arrived.
 */
export function judgeStart(backup: Backup, instance: PolledInstance, known: StartKnowledge, now: Date): StartVerdict {
  const { reconciliationStartedAt = "", instanceID } = backup.status ?? {};
  const pod = instanceID?.podName ?? "";
  if (instance.kind === "silent") {
    return { kind: "wait", afterMs: silentPauseMs, because: `instance ${pod} does not answer: ${instance.reason}` };
  }
  const ours = instance.status.cnpgTs;
  if (ours?.backups?.includes(backup.metadata.uid ?? "")) return { kind: "told", because: `${pod} takes it` };
  const isNoted = backup.metadata.annotations?.[annotations.backupAccepted] === reconciliationStartedAt;
  const isAccepted = known.accepted || (reconciliationStartedAt !== "" && isNoted);
  if (isAccepted && ours?.backups === undefined) {
    return { kind: "told", because: `${pod} has accepted it` };
  }
  const claimedMs = Date.parse(reconciliationStartedAt);
  const ageMs = Number.isNaN(claimedMs) ? Number.POSITIVE_INFINITY : now.getTime() - claimedMs;
  const { unheard } = known;
  if (unheard && (ours || !unheard.mayHaveRun)) {
    if (ageMs <= answerPatienceMs) return { kind: "ask", because: "the last question was not answered" };
    return { kind: "fail", message: `pod ${pod} could not be told to take the backup: ${unheard.reason}` };
  }
  if (ours) return { kind: "ask", because: `${pod} does not know of it yet` };
  if (unheard && backupMethod(backup) === "plugin") {
    if (ageMs <= silentBackupLimitMs) {
      const because = `the answer of ${pod} was lost; it may be taking the backup`;
      return { kind: "wait", afterMs: againMs * 6, because };
    }
    const message = `nothing was heard of the backup for a day after its start in pod ${pod}: ${unheard.reason}`;
    return { kind: "fail", message };
  }
  // An in-tree backup that had begun would say `running` by now.
  if (ageMs > claimPatienceMs) return { kind: "ask", because: `nobody is known to have told ${pod} of it` };
  return { kind: "wait", afterMs: claimPatienceMs - ageMs + 1_000, because: `${pod} is about to be told of it` };
}
