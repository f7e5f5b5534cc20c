import type { Cluster } from "../../../src/api/generated/cluster.ts";

type Spec = Cluster["spec"];

/** A Cluster `obs` with three healthy instances, changed as a test needs it. */
export function aCluster(
  spec: Partial<Spec> = {},
  status: NonNullable<Cluster["status"]> = {},
  annotations: Record<string, string> = {},
): Cluster {
  return {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Cluster",
    metadata: { name: "obs", namespace: "obs", annotations },
    spec: { instances: 3, storage: { size: "1Gi" }, ...spec },
    status: {
      currentPrimary: "obs-1",
      instanceNames: ["obs-1", "obs-2", "obs-3"],
      instancesStatus: { healthy: ["obs-1", "obs-2", "obs-3"] },
      ...status,
    },
  };
}
