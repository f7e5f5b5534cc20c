import { paths } from "../api/constants.ts";
import type { Cluster } from "../api/generated/cluster.ts";

/** The flag that puts the WAL on its own volume, when the cluster has one. */
export function walFlags(cluster: Cluster): string[] {
  return cluster.spec.walStorage ? ["--pg-wal", paths.walDir] : [];
}
