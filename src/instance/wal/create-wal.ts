import { stat } from "node:fs/promises";
import type { Cluster } from "../../api/generated/cluster.ts";
import type { InTreeSource } from "../../plan/instance/wal-sources.ts";
import type { InstanceContext } from "../instance-context.ts";
import type { PodPlugins } from "../plugins/pod-plugins.ts";
import type { ClusterStatusWriter } from "../reconcile/cluster-status.ts";
import { WalRequests } from "./wal-requests.ts";
import { WalServer } from "./wal-server.ts";
import type { InTreeWal } from "./wal-sources.ts";

/** WAL archiving and restoring of one instance or job. */
export interface InstanceWal {
  readonly requests: WalRequests;
  readonly server: WalServer;
  /** Loads the engines of the in-tree archives. */
  inTree(): Promise<InTreeWal>;
  /** Answers no more requests, lets those under way end and stops what works ahead. */
  close(): Promise<void>;
}

export interface InstanceWalOptions {
  status: Pick<ClusterStatusWriter, "setCondition">;
  plugins: PodPlugins;
  /** The in-tree archive to restore from, where the Cluster's state does not tell it: in a recovery Job. */
  restoreSource?: (cluster: Cluster) => InTreeSource;
}

/** Puts the parts together; nothing listens yet. */
export function createInstanceWal(context: InstanceContext, options: InstanceWalOptions): InstanceWal {
  const { settings, paths, state, data, files, kube, clock, random } = context;
  const logger = context.logger.child({ logger: "wal-archive" });
  let loading: Promise<InTreeWal> | undefined;
  const inTree = () => {
    loading ??= import("./in-tree-wal.ts").then(({ createInTreeWal }) =>
      createInTreeWal({
        kube,
        clock,
        random,
        files,
        logger,
        namespace: settings.namespace,
        environment: settings.environment,
        walFolder: paths.pgWal,
        recordFolder: `${paths.scratch}/wal-archive-spool`,
        spoolFolder: `${paths.scratch}/wal-restore-spool`,
      }),
    );
    return loading;
  };
  const requests = new WalRequests({
    ...options,
    podName: settings.podName,
    pgData: paths.pgData,
    markerPath: paths.checkEmptyArchive,
    cluster: () => state.cluster,
    purpose: async () => {
      if (state.rewinding) return "rewind";
      return (await data.role()) === "standby" ? "standby" : "recovery";
    },
    clock,
    files,
    sizeOf,
    inTree,
    logger: context.logger,
  });
  const server = new WalServer(requests, context.logger);
  return {
    requests,
    server,
    inTree,
    async close() {
      await server.close();
      if (loading) await (await loading).close();
    },
  };
}

async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
