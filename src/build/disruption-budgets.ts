import { clusterName, isMaintenanceInProgress, reusesPvc } from "../api/cluster-facts.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { PodDisruptionBudget } from "../api/generated/kubernetes.ts";
import { labels } from "../api/labels.ts";
import { childNames } from "../api/names.ts";
import type { BuildContext } from "./context.ts";
import { appLabels, childMetadata } from "./metadata.ts";

/** A disruption budget of the cluster; without `budget` one of that name must not exist. */
export interface DesiredBudget {
  name: string;
  budget?: PodDisruptionBudget;
}

/** The budgets that protect the primary and the replicas from voluntary evictions. */
export function desiredDisruptionBudgets(cluster: Cluster, context: BuildContext): DesiredBudget[] {
  const names = childNames(clusterName(cluster));
  const instances = cluster.spec.instances;
  const enabled = cluster.spec.enablePDB ?? true;
  // During maintenance instances are expected to go down and to wait for their volumes.
  const waiting = isMaintenanceInProgress(cluster) && reusesPvc(cluster);
  const primary = enabled && !(waiting && instances === 1);
  const replicas = enabled && instances >= 3 && !waiting;
  return [
    primary
      ? { name: names.primaryPdb, budget: budget(cluster, context, names.primaryPdb, "primary", 1) }
      : { name: names.primaryPdb },
    replicas
      ? { name: names.replicaPdb, budget: budget(cluster, context, names.replicaPdb, "replica", instances - 2) }
      : { name: names.replicaPdb },
  ];
}

function budget(
  cluster: Cluster,
  context: BuildContext,
  name: string,
  role: "primary" | "replica",
  minAvailable: number,
): PodDisruptionBudget {
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: childMetadata(cluster, context, { name, labels: appLabels(cluster) }),
    spec: {
      minAvailable,
      selector: { matchLabels: { [labels.cluster]: clusterName(cluster), [labels.instanceRole]: role } },
    },
  };
}
