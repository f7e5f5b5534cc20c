import { clusterName } from "../api/cluster-facts.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { Affinity, PodAffinityTerm, PodAntiAffinity } from "../api/generated/kubernetes.ts";
import { labels } from "../api/labels.ts";
import { present } from "./present.ts";

/** Where pods of the cluster want to run relative to each other and to what the user names. */
export function buildAffinity(cluster: Cluster): Affinity | undefined {
  return affinityWith(cluster, mergeAntiAffinity(generatedAntiAffinity(cluster, instances), additional(cluster)));
}

/**
 * The same for a Job that fills an instance's volume. Clones are made side by side, and a volume of a node keeps its instance
 * there for good, so a Job keeps away from other Jobs as an instance does from instances.
 */
export function buildJobAffinity(cluster: Cluster): Affinity | undefined {
  const apart = mergeAntiAffinity(generatedAntiAffinity(cluster, instances), generatedAntiAffinity(cluster, jobs));
  return affinityWith(cluster, mergeAntiAffinity(apart, additional(cluster)));
}

type Requirement = NonNullable<NonNullable<PodAffinityTerm["labelSelector"]>["matchExpressions"]>[number];

const instances: Requirement = { key: labels.podRole, operator: "In", values: ["instance"] };
const jobs: Requirement = { key: labels.jobRole, operator: "Exists" };

const additional = (cluster: Cluster) => cluster.spec.affinity?.additionalPodAntiAffinity;

function affinityWith(cluster: Cluster, podAntiAffinity: PodAntiAffinity | undefined): Affinity | undefined {
  const config = cluster.spec.affinity;
  const affinity = present<Affinity>({
    nodeAffinity: config?.nodeAffinity,
    podAffinity: config?.additionalPodAffinity,
    podAntiAffinity,
  });
  return Object.keys(affinity).length > 0 ? affinity : undefined;
}

function generatedAntiAffinity(cluster: Cluster, others: Requirement): PodAntiAffinity | undefined {
  const config = cluster.spec.affinity;
  if (config?.enablePodAntiAffinity === false) return undefined;
  const term: PodAffinityTerm = {
    labelSelector: {
      matchExpressions: [{ key: labels.cluster, operator: "In", values: [clusterName(cluster)] }, others],
    },
    topologyKey: config?.topologyKey || "kubernetes.io/hostname",
  };
  switch (config?.podAntiAffinityType || "preferred") {
    case "preferred":
      return { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, podAffinityTerm: term }] };
    case "required":
      return { requiredDuringSchedulingIgnoredDuringExecution: [term] };
    default:
      return undefined;
  }
}

function mergeAntiAffinity(
  generated: PodAntiAffinity | undefined,
  additional: PodAntiAffinity | undefined,
): PodAntiAffinity | undefined {
  if (!generated || !additional) return generated ?? additional;
  const required = [
    ...(generated.requiredDuringSchedulingIgnoredDuringExecution ?? []),
    ...(additional.requiredDuringSchedulingIgnoredDuringExecution ?? []),
  ];
  const preferred = [
    ...(generated.preferredDuringSchedulingIgnoredDuringExecution ?? []),
    ...(additional.preferredDuringSchedulingIgnoredDuringExecution ?? []),
  ];
  return {
    ...(required.length > 0 ? { requiredDuringSchedulingIgnoredDuringExecution: required } : {}),
    ...(preferred.length > 0 ? { preferredDuringSchedulingIgnoredDuringExecution: preferred } : {}),
  };
}
