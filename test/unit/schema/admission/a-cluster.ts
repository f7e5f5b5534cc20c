import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import {
  type AdmissionContext,
  applyDefaults,
  formatFieldIssue,
  validateClusterCreate,
  validateClusterUpdate,
} from "../../../../src/schema/admission/index.ts";

export type Spec = Partial<Cluster["spec"]>;

/** Parts of a cluster that a test is about; the rest is valid and plain. */
export interface ClusterParts {
  name?: string;
  annotations?: Record<string, string>;
  resourceVersion?: string;
  spec?: Spec;
  status?: NonNullable<Cluster["status"]>;
}

export const settings = {
  defaultPostgresImage: "registry.example/postgresql:18.4",
  monitoringQueriesConfigMap: "",
  monitoringQueriesSecret: "",
  includePlugins: [],
};

export const context: AdmissionContext = { settings };

/** A cluster as a user writes it. */
export function aCluster(parts: ClusterParts = {}): Cluster {
  return {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Cluster",
    metadata: {
      name: parts.name ?? "db",
      namespace: "shop",
      ...(parts.annotations ? { annotations: parts.annotations } : {}),
      ...(parts.resourceVersion ? { resourceVersion: parts.resourceVersion } : {}),
    },
    spec: { instances: 3, storage: { size: "1Gi" }, ...parts.spec },
    ...(parts.status ? { status: parts.status } : {}),
  };
}

/** A cluster with its defaults, fixed parameters left as the user wrote them. */
export function aDefaultedCluster(parts: ClusterParts = {}): Cluster {
  return applyDefaults(aCluster(parts), { mode: "preserve", settings });
}

/** What is printed when the cluster is created. */
export function refusals(parts: ClusterParts, admission: AdmissionContext = context): string[] {
  return validateClusterCreate(aDefaultedCluster(parts), admission).map(formatFieldIssue);
}

/** What is printed when a cluster is changed. */
export function updateRefusals(previous: ClusterParts, next: ClusterParts): string[] {
  return validateClusterUpdate(aDefaultedCluster(next), aCluster(previous), context).map(formatFieldIssue);
}
