import type { Backup } from "../../api/generated/backup.ts";
import type { StartKnowledge } from "../../plan/backup/judge-start.ts";
import type { Clock, Random } from "../../ports/clock.ts";
import { ExecError, type PodExec } from "../../ports/pod-exec.ts";
import { type RetryPolicy, retry } from "../../runtime/backoff.ts";

/** What became of the question; `unheard` = no answer came, for the reason given. */
export type StartAnswer =
  | { kind: "accepted" }
  | { kind: "refused"; reason: string }
  | { kind: "unheard"; reason: string; mayHaveRun: boolean };

/** Tells pods to take backups. */
export interface BackupStarter {
  /**
   * Asks a pod to take the backup. `idempotent` = it takes each Backup once, however often it is asked; another one is not asked
   * again after a question that may have arrived.
   */
  ask(backup: Backup, pod: string, options: { idempotent: boolean; signal: AbortSignal }): Promise<StartAnswer>;
  /** What this process knows of the start that the Backup's status claims. */
  known(backup: Backup): StartKnowledge;
  /** The Backup has ended. */
  forget(backup: Backup): void;
}

/** The waits of the original. */
const policy: RetryPolicy = { maxAttempts: 4, baseMs: 10, factor: 5, maxMs: 1_250, jitter: 0.1 };

class Refusal extends Error {}

/** Starts backups as the original does, by the instance manager's own command in the pod (reference: backups §4.7). */
export function createBackupStarter(exec: PodExec, options: { clock: Clock; random: Random }): BackupStarter {
  const answers = new Map<string, { claim: string; answer: StartAnswer }>();
  const uidOf = (backup: Backup) => backup.metadata.uid ?? "";

  async function ask(
    { metadata: { namespace = "", name = "" } }: Backup,
    pod: string,
    { idempotent, signal }: { idempotent: boolean; signal: AbortSignal },
  ): Promise<StartAnswer> {
    const attempt = async () => {
      const command = ["/controller/manager", "backup", name];
      const result = await exec.run({ namespace, pod, container: "postgres" }, command, { signal });
      if (result.exitCode !== 0) throw new Refusal(refusalOf(result.stderr || result.stdout, result.exitCode));
    };
    const classify = (error: unknown) => ({ retryable: idempotent || !mayHaveRun(error) });
    try {
      await retry(attempt, { policy, ...options, signal, classify });
      return { kind: "accepted" };
    } catch (error) {
      signal.throwIfAborted();
      const reason = error instanceof Error ? error.message : String(error);
      if (error instanceof Refusal) return { kind: "refused", reason };
      return { kind: "unheard", reason, mayHaveRun: mayHaveRun(error) };
    }
  }

  return {
    async ask(backup, pod, how) {
      const answer = await ask(backup, pod, how);
      answers.set(uidOf(backup), { claim: claimOf(backup), answer });
      return answer;
    },
    known(backup) {
      const last = answers.get(uidOf(backup));
      const answer = last?.claim === claimOf(backup) ? last.answer : undefined;
      return {
        accepted: answer?.kind === "accepted",
        ...(answer?.kind === "unheard" ? { unheard: answer } : {}),
      };
    },
    forget: (backup) => void answers.delete(uidOf(backup)),
  };
}

/** A start is named by its pod and moment. */
function claimOf({ status }: Backup): string {
  return [status?.instanceID?.podName, status?.instanceID?.ContainerID, status?.reconciliationStartedAt].join(" ");
}

function mayHaveRun(error: unknown): boolean {
  if (error instanceof Refusal) return false;
  // Not known to have failed before the program ran: it may have.
  return !(error instanceof ExecError) || error.mayHaveRun;
}

/** The last thing that the command said. */
function refusalOf(output: string, exitCode: number): string {
  const last = output.trim().split("\n").at(-1) ?? "";
  return last === "" ? `the backup command in the pod ended with ${exitCode}` : last;
}
