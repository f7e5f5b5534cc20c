import { isReplicaCluster, walArchiverPlugin } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { parseTargetPrimary } from "../../api/pg-status.ts";
import { planWalArchive, planWalRestore, type WalView } from "../../plan/instance/wal.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import type { ClusterStatusWriter } from "../reconcile/cluster-status.ts";
import { archivingCondition } from "../web/local-server.ts";

/** Answer to a WAL client: its exit code, and what it logs. */
export interface WalAnswer {
  code: 0 | 1;
  message: string;
}

export interface WalDeps {
  podName: string;
  cluster: () => Cluster | undefined;
  clock: Clock;
  status: ClusterStatusWriter;
  logger: Logger;
}

/** How long a request waits for a manager that has just come up to read the Cluster. */
const clusterLimitMs = 10_000;
const clusterPollMs = 50;

const unreadCluster: WalAnswer = { code: 1, message: "the Cluster has not been read yet" };

function view(podName: string, cluster: Cluster): WalView {
  const target = parseTargetPrimary(cluster.status?.targetPrimary);
  return {
    me: podName,
    current: cluster.status?.currentPrimary ?? "",
    target: target.kind === "instance" ? target.name : undefined,
    replicaCluster: isReplicaCluster(cluster),
    archiverPlugin: walArchiverPlugin(cluster),
    objectStore: cluster.spec.backup?.barmanObjectStore !== undefined,
  };
}

/** Answers the archive and restore commands of PostgreSQL (reference: instance manager §10.1, §10.2). */
export class WalRequests {
  readonly #deps: WalDeps;
  /** Text of the condition as last reported, so that a steady state costs no request. */
  #reported: string | undefined;

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

  async archive(_name: string): Promise<WalAnswer> {
    const cluster = await this.#cluster();
    if (!cluster) return unreadCluster;
    const decision = planWalArchive(view(this.#deps.podName, cluster));
    switch (decision.kind) {
      case "skip":
        return { code: 0, message: "" };
      case "refuse":
        return { code: 1, message: decision.reason };
      case "archive": {
        const message =
          decision.by === "plugin"
            ? `wal archive plugin is not available: ${decision.plugin ?? ""}`
            : "archiving to spec.backup.barmanObjectStore is not available in this version";
        this.#report(message);
        return { code: 1, message };
      }
    }
  }

  async restore(name: string, _destination: string): Promise<WalAnswer> {
    const cluster = await this.#cluster();
    if (!cluster) return unreadCluster;
    const decision = planWalRestore({
      ...view(this.#deps.podName, cluster),
      name,
      clusterTimeline: cluster.status?.timelineID ?? 0,
      restorePlugins: false,
    });
    // That nothing is there is the everyday answer and no news.
    if (decision.kind === "notFound") return { code: 1, message: "" };
    return { code: 1, message: "restoring from an object store is not available in this version" };
  }

  #report(error: string): void {
    if (this.#reported === error) return;
    this.#reported = error;
    this.#deps.status.setCondition(archivingCondition(error)).catch((failure) => {
      this.#reported = undefined;
      this.#deps.logger.warning("Could not report how archiving goes", { error: failure });
    });
  }
}
