// Backups that this instance takes: started over the local interface, run in the background, one per Backup object.
import type { Backup } from "../../api/generated/backup.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import type { BackupReport } from "../../api/pg-status.ts";
import { resources } from "../../kube/resources.ts";
import {
  type BackupStart,
  backupCompleted,
  backupFailed,
  backupNameOf,
  backupStarted,
  backupSucceeded,
  type CompletedBackup,
  formatSeconds,
  inTreeRunning,
  inTreeWaiting,
  isBackupOf,
  isBackupOver,
  isLeftRunning,
  lastBackupFailed,
  planBackupStart,
  withRecoveryWindow,
} from "../../plan/instance/backup.ts";
import type { EventSink } from "../../ports/event-sink.ts";
import type { InstanceContext } from "../instance-context.ts";
import type { PodPlugins } from "../plugins/pod-plugins.ts";
import type { ClusterStatusWriter } from "../reconcile/cluster-status.ts";
import { withCondition } from "../reconcile/cluster-status.ts";
import type { InTreeWal } from "../wal/wal-sources.ts";
import { type HttpAnswer, textAnswer } from "../web/http-answer.ts";
import { waitForArchiving } from "./archiving-ready.ts";
import { BackupRecord } from "./backup-record.ts";
import { announceFirstRequired } from "./first-required.ts";
import { runPluginBackup } from "./plugin-run.ts";

export interface BackupRunnerDeps {
  context: InstanceContext;
  plugins: PodPlugins;
  status: Pick<ClusterStatusWriter, "setCondition" | "update">;
  events: EventSink;
  /** Loads the engines of the in-tree archives. */
  inTree: () => Promise<InTreeWal>;
}

type Runnable = Exclude<BackupStart, { kind: "refuse" }>;

/** Pauses between looks for Backups that were left running, in milliseconds. */
const firstLookMs = 500;
const longestLookMs = 30_000;

/** How long news of a backup for the Cluster's status may take; nothing but the news hangs on it. */
const newsLimitMs = 30_000;

/** What each line about a backup tells of its object. */
function logFieldsOf({ metadata }: Backup): Record<string, unknown> {
  return { logger: "backup", backupName: metadata.name, backupNamespace: metadata.namespace };
}

/** Starts backups and follows them to their end. */
export class BackupRunner {
  readonly #deps: BackupRunnerDeps;
  readonly #running = new Map<string, Promise<void>>();
  readonly #closing = new AbortController();

  constructor(deps: BackupRunnerDeps) {
    this.#deps = deps;
  }

  /** Answers `GET /pg/backup?name=NAME`: accepted, or why not. Asking twice for one Backup starts it once. */
  async start(name: string): Promise<HttpAnswer> {
    const { context } = this.#deps;
    const { cluster } = context.state;
    if (name === "") return textAnswer(400, "the query has no name: give the name of a Backup");
    if (!cluster) return textAnswer(500, "the Cluster has not been read yet");
    let backup: Backup;
    try {
      const key = { namespace: context.settings.namespace, name };
      backup = await context.kube.get(resources.backups, key, { timeoutMs: 10_000 });
    } catch (error) {
      return textAnswer(
        500,
        `Backup ${name} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
    if (!isBackupOf(backup, context.settings.podName)) {
      return textAnswer(409, `Backup ${name} is taken by ${backup.status?.instanceID?.podName ?? "another pod"}`);
    }
    const start = planBackupStart(cluster, backup);
    if (start.kind === "refuse") return textAnswer(start.status, start.message);
    const uid = backup.metadata.uid ?? name;
    if (this.#running.has(uid) || isBackupOver(backup)) return textAnswer(200, "OK");
    const run = this.#run(cluster, backup, start).finally(() => this.#running.delete(uid));
    this.#running.set(uid, run);
    run.catch((error: unknown) => context.logger.error("A backup ended unexpectedly", { backup: name, error }));
    return textAnswer(200, "OK");
  }

  /** UIDs of the Backups that are being taken, up to the moment when their end is written. */
  running(): readonly string[] {
    return [...this.#running.keys()];
  }

  /** What the operator is told of backups. */
  report(): BackupReport {
    return { backups: this.running(), endsBackups: true };
  }

  /** Gives up what runs; a backup that is not complete is none. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("the instance manager ends"));
    await Promise.allSettled(this.#running.values());
  }

  async #run(cluster: Cluster, backup: Backup, start: Runnable): Promise<void> {
    const { context, events } = this.#deps;
    const { signal } = this.#closing;
    const logger = context.logger.child(logFieldsOf(backup));
    const { podName } = context.settings;
    const record = new BackupRecord(backup, { podName, kube: context.kube, clock: context.clock, logger, events });
    record.event("Normal", "Starting", "Backup started");
    let done: CompletedBackup;
    try {
      await this.#tell(backupStarted);
      done = await whileWanted(record, signal, (stop) =>
        start.kind === "plugin"
          ? runPluginBackup(context, this.#deps.plugins, { ...start, cluster, backup, signal: stop })
          : this.#runInTree(record, start, stop),
      );
    } catch (error) {
      if (error instanceof Unwanted) {
        logger.warning("Backup given up", { reason: error.message });
        return;
      }
      logger.error("Backup failed", { error });
      // The end of this process: the operator sees it by the session that is gone, and nothing can be written any more.
      signal.throwIfAborted();
      await this.#failed(record, messageOf(error));
      return;
    }
    logger.info("Backup completed", { backupId: done.backupId });
    await this.#completed(record, cluster, start, done);
  }

  async #completed(record: BackupRecord, cluster: Cluster, start: Runnable, done: CompletedBackup): Promise<void> {
    const { clock, logger } = this.#deps.context;
    const isTold = await record.write((status) => backupCompleted(status, done, clock.now()), this.#closing.signal);
    if (isTold) {
      record.event("Normal", "Completed", "Backup completed");
      await this.#tell(backupSucceeded);
    }
    await this.#refresh(cluster, start, done).catch((error: unknown) =>
      logger.warning("What can be restored could not be brought up to date", { error }),
    );
  }

  /** Ends the in-tree backups that an earlier session of this pod left running, as the archive tells. */
  async endUnfinished(signal: AbortSignal): Promise<void> {
    const { context } = this.#deps;
    const { clock, state, kube, settings, logger } = context;
    while (!state.cluster) await clock.sleep(firstLookMs, signal);
    for (let pauseMs = firstLookMs; ; pauseMs = Math.min(longestLookMs, pauseMs * 2)) {
      try {
        const backups = await kube.list(resources.backups, { namespace: settings.namespace, signal });
        for (const backup of backups) this.#endUnfinished(state.cluster, backup);
        return;
      } catch (error) {
        signal.throwIfAborted();
        logger.warning("Backups that were left running cannot be looked for yet", { error });
        await clock.sleep(pauseMs, signal);
      }
    }
  }

  #endUnfinished(cluster: Cluster, backup: Backup): void {
    const { context } = this.#deps;
    const uid = backup.metadata.uid ?? "";
    const start = planBackupStart(cluster, backup);
    if (start.kind !== "inTree" || this.#running.has(uid)) return;
    if (!isLeftRunning(backup, context.settings)) return;
    const run = this.#lookUp(cluster, backup, start).finally(() => this.#running.delete(uid));
    this.#running.set(uid, run);
    run.catch((error: unknown) =>
      context.logger.error("What became of a backup could not be told", { backup: backup.metadata.name, error }),
    );
  }

  async #lookUp(cluster: Cluster, backup: Backup, start: Runnable & { kind: "inTree" }): Promise<void> {
    const { context, events } = this.#deps;
    const { signal } = this.#closing;
    const { podName } = context.settings;
    const logger = context.logger.child(logFieldsOf(backup));
    const record = new BackupRecord(backup, { podName, kube: context.kube, clock: context.clock, logger, events });
    const lost = `instance manager was restarted during backup on pod ${podName}`;
    try {
      const [{ findTakenBackup }, { places }] = await Promise.all([
        import("./unfinished-backups.ts"),
        this.#deps.inTree(),
      ]);
      const done = await findTakenBackup(context, places, { archive: start.archive, backup, signal });
      if (!done) return await this.#failed(record, lost);
      logger.info("A backup was complete before its instance manager ended", { backupId: done.backupId });
      await this.#completed(record, cluster, start, done);
    } catch (error) {
      signal.throwIfAborted();
      await this.#failed(record, `${lost}, and the archive cannot be read: ${messageOf(error)}`);
    }
  }

  async #runInTree(
    record: BackupRecord,
    start: Runnable & { kind: "inTree" },
    signal: AbortSignal,
  ): Promise<CompletedBackup> {
    const { context } = this.#deps;
    const backupName = backupNameOf(context.clock.now());
    const { archive } = start;
    const isWanted = await record.write((status) => inTreeRunning(status, archive, backupName), signal);
    if (!isWanted) throw new Unwanted("the Backup object is gone, over or another pod's");
    const onChange = (isFailing: boolean) => record.write((status) => inTreeWaiting(status, isFailing), signal);
    await waitForArchiving(context, onChange, signal);
    const [{ runInTreeBackup }, { places }] = await Promise.all([import("./in-tree-run.ts"), this.#deps.inTree()]);
    return runInTreeBackup(context, places, { archive, backupName, signal });
  }

  async #failed(record: BackupRecord, message: string): Promise<void> {
    const { clock } = this.#deps.context;
    const isTold = await record.write((status) => backupFailed(status, message, clock.now()), this.#closing.signal);
    if (!isTold) return;
    record.event("Warning", "Failed", `Backup failed: ${message}`);
    await this.#tell(lastBackupFailed(message), { lastFailedBackup: formatSeconds(clock.now()) });
  }

  /** A condition of the Cluster, with other fields; that it cannot be written is no failure of the backup. */
  async #tell(condition: typeof backupStarted, fields: { lastFailedBackup?: string } = {}): Promise<void> {
    const { context, status } = this.#deps;
    try {
      await status.update((current) => {
        const before = current.conditions ?? [];
        const conditions = withCondition(before, condition, context.clock.now());
        if (conditions === before && Object.keys(fields).length === 0) return current;
        return { ...current, ...fields, conditions: [...conditions] };
      }, this.#newsSignal());
    } catch (error) {
      context.logger.warning("The Cluster's status does not show the news of a backup", { error });
    }
  }

  async #refresh(cluster: Cluster, start: Runnable, done: CompletedBackup): Promise<void> {
    const { context, status, events } = this.#deps;
    if (start.kind === "inTree") {
      const [{ maintainArchive }, { places }] = await Promise.all([import("./maintenance.ts"), this.#deps.inTree()]);
      return maintainArchive({ context, places, status, events }, cluster, start.archive, this.#closing.signal);
    }
    // Until the plugin tells more of its archive, the first backup's end is the first moment that can be restored.
    const stoppedAtMs = done.stoppedAtMs ?? context.clock.now();
    await status.update((current) => {
      const known = Date.parse(current.firstRecoverabilityPointByMethod?.["plugin"] ?? "");
      const firstRecoverabilityPointMs = Number.isNaN(known) ? stoppedAtMs : known;
      return withRecoveryWindow(current, {
        method: "plugin",
        firstRecoverabilityPointMs,
        lastSuccessfulBackupMs: stoppedAtMs,
      });
    }, this.#newsSignal());
    await announceFirstRequired(context, this.#deps.plugins, this.#newsSignal());
  }

  #newsSignal(): AbortSignal {
    return AbortSignal.any([this.#closing.signal, AbortSignal.timeout(newsLimitMs)]);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The backup is not this pod's to take any more. */
class Unwanted extends Error {}

/** Does the work for as long as the backup is this pod's: two pods must not take one Backup. */
async function whileWanted<T>(
  record: BackupRecord,
  signal: AbortSignal,
  work: (stop: AbortSignal) => Promise<T>,
): Promise<T> {
  const done = new AbortController();
  const unwanted = new AbortController();
  const watch = record.untilTaken(AbortSignal.any([signal, done.signal])).then(
    (reason) => unwanted.abort(new Unwanted(reason)),
    // The work ended, or the process does.
    () => undefined,
  );
  try {
    return await work(AbortSignal.any([signal, unwanted.signal]));
  } catch (error) {
    throw unwanted.signal.aborted ? unwanted.signal.reason : error;
  } finally {
    done.abort();
    await watch;
  }
}
