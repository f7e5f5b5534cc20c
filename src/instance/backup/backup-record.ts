import type { Backup } from "../../api/generated/backup.ts";
import { patchStatus } from "../../kube/patch-status.ts";
import { resources } from "../../kube/resources.ts";
import { type BackupStatus, isBackupOf, isBackupOver } from "../../plan/instance/backup.ts";
import type { Clock } from "../../ports/clock.ts";
import type { EventSink } from "../../ports/event-sink.ts";
import { isKubeError, type KubeApi } from "../../ports/kube-api.ts";
import type { Logger } from "../../ports/logger.ts";

export interface BackupRecordDeps {
  podName: string;
  kube: KubeApi;
  clock: Clock;
  logger: Logger;
  events: EventSink;
}

const firstPauseMs = 500;
const longestPauseMs = 30_000;
const requestLimitMs = 10_000;
/** How often a backup under way looks whether it is still wanted here. */
const lookPauseMs = 15_000;

/** The object of one backup under way, and the events about it. */
export class BackupRecord {
  readonly #deps: BackupRecordDeps;
  readonly #backup: Backup;

  constructor(backup: Backup, deps: BackupRecordDeps) {
    this.#backup = backup;
    this.#deps = deps;
  }

  /**
   * Writes the status until it is written: an API server that is away must not turn a good backup into a failed one. False when
   * the object is gone, another one by now, given to another pod, or said to be over by somebody else.
   */
  async write(change: (status: BackupStatus) => BackupStatus, signal: AbortSignal): Promise<boolean> {
    const { kube, clock, logger } = this.#deps;
    const { namespace = "", name = "", uid } = this.#backup.metadata;
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(longestPauseMs, pauseMs * 2)) {
      try {
        const limit = AbortSignal.any([signal, AbortSignal.timeout(requestLimitMs)]);
        let written = false;
        await patchStatus(
          kube,
          resources.backups,
          { namespace, name },
          (current) => {
            written = current.metadata.uid === uid && this.#isMine(current);
            return written ? { ...current, status: change(current.status ?? {}) } : undefined;
          },
          { signal: limit },
        );
        return written;
      } catch (error) {
        signal.throwIfAborted();
        if (isKubeError(error, "notFound")) return false;
        logger.warning("The status of a Backup could not be written; it is tried again", { backup: name, error });
        await clock.sleep(pauseMs, signal);
      }
    }
  }

  /** Resolves with the reason once the backup is not this pod's any more; a Backup that was deleted is taken to its end. */
  async untilTaken(signal: AbortSignal): Promise<string> {
    const { kube, clock } = this.#deps;
    const { namespace = "", name = "", uid } = this.#backup.metadata;
    for (;;) {
      await clock.sleep(lookPauseMs, signal);
      const options = { timeoutMs: requestLimitMs, signal };
      const current = await kube.get(resources.backups, { namespace, name }, options).catch(() => undefined);
      if (!current || current.metadata.uid !== uid || this.#isMine(current)) continue;
      const { phase, error, instanceID } = current.status ?? {};
      return isBackupOver(current)
        ? `the Backup says ${phase}${error ? `: ${error}` : ""}`
        : `the Backup was given to ${instanceID?.podName ?? "another pod"}`;
    }
  }

  #isMine(current: Backup): boolean {
    return !isBackupOver(current) && isBackupOf(current, this.#deps.podName);
  }

  event(type: "Normal" | "Warning", reason: string, message: string): void {
    const { namespace = "", name = "", uid = "" } = this.#backup.metadata;
    this.#deps.events.record(
      { apiVersion: "postgresql.cnpg.io/v1", kind: "Backup", namespace, name, uid },
      { type, reason, message },
    );
  }
}
