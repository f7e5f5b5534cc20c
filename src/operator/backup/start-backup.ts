import type { Backup } from "../../api/generated/backup.ts";
import type { Clock, Random } from "../../ports/clock.ts";
import type { PodExec } from "../../ports/pod-exec.ts";
import { type RetryPolicy, retry } from "../../runtime/backoff.ts";

/** Tells pods to take backups. */
export interface BackupStarter {
  /** Resolves when the pod has accepted; rejects with the reason of its refusal. */
  start(backup: Backup, pod: string, signal: AbortSignal): Promise<void>;
  /** Whether this process has told a pod of it. */
  hasStarted(backup: Backup): boolean;
}

/** The waits of the original. */
const policy: RetryPolicy = { maxAttempts: 4, baseMs: 10, factor: 5, maxMs: 1_250, jitter: 0.1 };

/** Starts backups as the original does, by the instance manager's own command in the pod (reference: backups §4.7). */
export function createBackupStarter(exec: PodExec, options: { clock: Clock; random: Random }): BackupStarter {
  const told = new Set<string>();
  return {
    hasStarted: (backup) => told.has(backup.metadata.uid ?? ""),
    async start(backup, pod, signal) {
      const { namespace = "", name = "", uid = "" } = backup.metadata;
      const attempt = async () => {
        const command = ["/controller/manager", "backup", name];
        const result = await exec.run({ namespace, pod, container: "postgres" }, command, { signal });
        if (result.exitCode === 0) return;
        throw new Error(refusalOf(result.stderr || result.stdout, result.exitCode));
      };
      told.add(uid);
      await retry(attempt, { policy, ...options, signal, classify: () => ({ retryable: true }) });
    },
  };
}

/** The last thing that the command said. */
function refusalOf(output: string, exitCode: number): string {
  const last = output.trim().split("\n").at(-1) ?? "";
  return last === "" ? `the backup command in the pod ended with ${exitCode}` : last;
}
