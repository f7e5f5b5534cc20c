import type { Cluster } from "../../../src/api/generated/cluster.ts";
import { type BuildContext, defaultBuildContext } from "../../../src/build/context.ts";

/** Parts of a cluster that a test is about. */
export interface ClusterParts {
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  spec?: Partial<Cluster["spec"]>;
  status?: NonNullable<Cluster["status"]>;
}

/** A cluster named `db` in the namespace `shop`, as it is after defaults. */
export function aCluster(parts: ClusterParts = {}): Cluster {
  return {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Cluster",
    metadata: {
      name: "db",
      namespace: "shop",
      uid: "u-1",
      ...(parts.labels ? { labels: parts.labels } : {}),
      ...(parts.annotations ? { annotations: parts.annotations } : {}),
    },
    spec: {
      instances: 3,
      imageName: "registry.example/postgresql:17.6",
      storage: { size: "1Gi" },
      bootstrap: { initdb: { database: "app", owner: "app" } },
      ...parts.spec,
    },
    ...(parts.status ? { status: parts.status } : {}),
  };
}

export const context: BuildContext = defaultBuildContext;

export function aContext(parts: Partial<BuildContext>): BuildContext {
  return { ...defaultBuildContext, ...parts };
}
