import type { Cluster } from "../../api/generated/cluster.ts";
import type { ClusterStores, StoreReference } from "./cluster-stores.ts";

/** Where a WAL file is restored from, and what its absence there may mean. */
export interface RestoreSource {
  store: StoreReference;
  /** PostgreSQL can stream on where the archive ends, so it must be told once that it has. */
  streamingAvailable: boolean;
}

/** Chooses the archive for a pod's restore_command; `undefined` when the Cluster names none that fits. */
export function chooseRestoreSource(
  cluster: Cluster,
  stores: ClusterStores,
  podName: string,
): RestoreSource | undefined {
  const current = cluster.status?.currentPrimary ?? "";
  const isCurrent = current === podName;
  const streamingAvailable = current !== "" && (!isCurrent || sourceCanStream(cluster));
  const store =
    current === ""
      ? (stores.recovery ?? stores.replicaSource ?? stores.own)
      : isCurrent && stores.replicaSource
        ? stores.replicaSource
        : (stores.own ?? stores.replicaSource);
  return store && { store, streamingAvailable };
}

/** Whether the cluster that a designated primary follows can be connected to. */
function sourceCanStream({ spec }: Cluster): boolean {
  const source = spec.externalClusters?.find((entry) => entry.name === spec.replica?.source);
  return Object.keys(source?.connectionParameters ?? {}).length > 0;
}
