import { isReplicaCluster } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { parseTargetPrimary } from "../../api/pg-status.ts";
import {
  planRestoreOutcome,
  planWalArchive,
  planWalRestore,
  type WalRestorePurpose,
  type WalView,
} from "../../plan/instance/wal.ts";
import {
  chooseArchiver,
  chooseInTreeSource,
  type InTreeSource,
  restorePlugins,
} from "../../plan/instance/wal-sources.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Files } from "../../ports/files.ts";
import type { Logger } from "../../ports/logger.ts";
import type { PodPlugins } from "../plugins/pod-plugins.ts";
import type { ClusterStatusWriter } from "../reconcile/cluster-status.ts";
import { archiveFile } from "./archive-file.ts";
import {
  archivingCondition,
  showsCondition,
  unconfiguredArchiving,
  type WantedCondition,
} from "./archiving-condition.ts";
import { restoreFile } from "./restore-file.ts";
import type { InTreeWal } from "./wal-sources.ts";

/** Answer to a WAL client: its exit code, and what it logs. */
export interface WalAnswer {
  code: number;
  message: string;
  /** Level of the message in the log. @default of a failure `error`, else `info` */
  level?: "warning";
}

export interface WalDeps {
  podName: string;
  pgData: string;
  /** File that asks for an empty archive before the first file goes there. */
  markerPath: string;
  cluster: () => Cluster | undefined;
  /** Who waits for a restored file. */
  purpose: () => Promise<WalRestorePurpose>;
  clock: Clock;
  files: Files;
  /** Bytes of a file; `undefined` when it does not exist. */
  sizeOf(path: string): Promise<number | undefined>;
  status: Pick<ClusterStatusWriter, "setCondition">;
  plugins: PodPlugins;
  /** Loads the engines of the in-tree archives. */
  inTree: () => Promise<InTreeWal>;
  /** Replaces the in-tree archive that the Cluster's state would choose, as a recovery Job needs it. */
  restoreSource?: (cluster: Cluster) => InTreeSource;
  logger: Logger;
}

/** How long a request waits for a manager that has just come up to read the Cluster. */
const clusterLimitMs = 10_000;
const clusterPollMs = 50;
/** Pause before an uncertain answer, so that PostgreSQL does not ask a failing source in a loop. */
const uncertainPauseMs = 100;

const unreadCluster = "the Cluster has not been read yet";

function roles(podName: string, cluster: Cluster): Pick<WalView, "me" | "current" | "target"> {
  const target = parseTargetPrimary(cluster.status?.targetPrimary);
  return {
    me: podName,
    current: cluster.status?.currentPrimary ?? "",
    target: target.kind === "instance" ? target.name : undefined,
  };
}

/** Answers the archive and restore commands of PostgreSQL (reference: instance manager §10.1, §10.2). */
export class WalRequests {
  readonly #deps: WalDeps;
  /** The condition as last sent: while the watch is behind, a steady state costs no request. */
  #sent: { wanted: WantedCondition; atMs: number } | undefined;

  constructor(deps: WalDeps) {
    this.#deps = deps;
  }

  /** The Cluster, waited for a little: after three refusals PostgreSQL would not ask again for a minute. */
  async #cluster(): Promise<Cluster | undefined> {
    const { cluster, clock } = this.#deps;
    const end = clock.monotonicMs() + clusterLimitMs;
    while (!cluster() && clock.monotonicMs() < end) await clock.sleep(clusterPollMs);
    return cluster();
  }

  /** Path of a file that PostgreSQL names relative to its data folder. */
  #absolute(path: string): string {
    return path.startsWith("/") ? path : `${this.#deps.pgData}/${path}`;
  }

  /** Archives one file that PostgreSQL asks for. */
  async archive(path: string): Promise<WalAnswer> {
    const cluster = await this.#cluster();
    if (!cluster) return { code: 1, message: unreadCluster };
    const decision = planWalArchive({
      ...roles(this.#deps.podName, cluster),
      replicaCluster: isReplicaCluster(cluster),
      archiver: chooseArchiver(cluster),
    });
    switch (decision.kind) {
      case "skip":
        if (decision.unconfigured) this.#report(unconfiguredArchiving);
        return { code: 0, message: "" };
      case "refuse":
        return { code: 1, message: decision.reason, level: decision.level };
      case "archive":
        break;
    }
    try {
      const request = { cluster, by: decision.by, path: this.#absolute(path), lookAhead: true };
      const result = await archiveFile(this.#deps, request);
      this.#report(result === "nobody" ? unconfiguredArchiving : archivingCondition(""));
      return { code: 0, message: "" };
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      const cause = error instanceof Error ? error.cause : undefined;
      if (cause !== undefined)
        this.#deps.logger.warning("A WAL file was not archived", { walName: path, error: cause });
      this.#report(archivingCondition(message));
      return { code: 1, message };
    }
  }

  /**
   * Archives one file whoever is the primary: what a former primary shares with the timeline that lives on, or the partial
   * segment of a fenced one. False when nobody archives.
   */
  async archiveAnyway(path: string): Promise<boolean> {
    const cluster = await this.#cluster();
    if (!cluster) throw new Error(unreadCluster);
    const by = chooseArchiver(cluster);
    if (by.kind === "none") return false;
    const request = { cluster, by, path: this.#absolute(path), lookAhead: false };
    return (await archiveFile(this.#deps, request)) === "archived";
  }

  /** Restores one file that PostgreSQL or pg_rewind asks for. */
  async restore(name: string, destination: string): Promise<WalAnswer> {
    const cluster = await this.#cluster();
    // Unreadable files prove no standby, and only a recovery must not be told a wrong end.
    const purpose = await this.#deps.purpose().catch(() => "recovery" as const);
    if (!cluster) return { code: planRestoreCode(purpose), message: unreadCluster };
    const { clock } = this.#deps;
    const startedAt = clock.monotonicMs();
    for (let attempts = 1; ; attempts++) {
      const reports = await this.#restoreOnce(this.#deps.cluster() ?? cluster, name, destination, purpose).catch(
        (error: unknown) => [
          { answer: "unknown" as const, message: error instanceof Error ? error.message : String(error) },
        ],
      );
      const answers = reports.map(({ answer }) => answer);
      const elapsedMs = clock.monotonicMs() - startedAt;
      const outcome = planRestoreOutcome({ answers, purpose, elapsedMs, attempts });
      const uncertain = reports.filter(({ answer }) => answer === "unknown").map(({ message }) => message);
      const message = answers.includes("restored") ? "" : uncertain.join("; ");
      if (outcome.kind === "answer") {
        if (message !== "") await clock.sleep(uncertainPauseMs);
        return { code: outcome.code, message };
      }
      this.#deps.logger.warning("A WAL file cannot be restored yet; recovery is kept waiting", {
        walName: name,
        reason: message,
        retryAfterMs: outcome.delayMs,
      });
      await clock.sleep(outcome.delayMs);
    }
  }

  async #restoreOnce(cluster: Cluster, name: string, destination: string, purpose: WalRestorePurpose) {
    const inTree = this.#deps.restoreSource?.(cluster) ?? chooseInTreeSource(cluster, this.#deps.podName);
    const plugins = restorePlugins(cluster);
    const decision = planWalRestore({
      ...roles(this.#deps.podName, cluster),
      name,
      clusterTimeline: cluster.status?.timelineID ?? 0,
      sources: { plugins: plugins.map((plugin) => plugin.name), objectStore: inTree.kind !== "none" },
    });
    // That nothing is there is the everyday answer and no news.
    if (decision.kind === "notFound") return [];
    const request = { cluster, name, destination: this.#absolute(destination), purpose, plugins, inTree };
    return restoreFile(this.#deps, request);
  }

  #report(wanted: WantedCondition): void {
    const { cluster, status, logger, clock } = this.#deps;
    const known = cluster();
    if (known && showsCondition(known, wanted)) return;
    const { wanted: sent, atMs } = this.#sent ?? { wanted: undefined, atMs: 0 };
    const same = sent?.status === wanted.status && sent.message === wanted.message;
    if (same && clock.monotonicMs() - atMs < repeatReportMs) return;
    this.#sent = { wanted, atMs: clock.monotonicMs() };
    status.setCondition(wanted).catch((failure) => {
      this.#sent = undefined;
      logger.warning("Could not report how archiving goes", { error: failure });
    });
  }
}

/** The watch shows a write within this time, or the condition is sent again. */
const repeatReportMs = 10_000;

/** What an answer without any knowledge is told as. */
function planRestoreCode(purpose: WalRestorePurpose): number {
  const outcome = planRestoreOutcome({
    answers: ["unknown"],
    purpose,
    elapsedMs: Number.POSITIVE_INFINITY,
    attempts: 1,
  });
  return outcome.kind === "answer" ? outcome.code : 1;
}
