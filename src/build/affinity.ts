import { clusterName } from "../api/cluster-facts.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { Affinity, PodAffinityTerm, PodAntiAffinity } from "../api/generated/kubernetes.ts";
import { labels } from "../api/labels.ts";
import { present } from "./present.ts";

/** Where pods of the cluster want to run relative to each other and to what the user names. */
export function buildAffinity(cluster: Cluster): Affinity | undefined {
  const config = cluster.spec.affinity;
  const podAntiAffinity = mergeAntiAffinity(generatedAntiAffinity(cluster), config?.additionalPodAntiAffinity);
  const affinity = present<Affinity>({
    nodeAffinity: config?.nodeAffinity,
    podAffinity: config?.additionalPodAffinity,
    podAntiAffinity,
  });
  return Object.keys(affinity).length > 0 ? affinity : undefined;
}

function generatedAntiAffinity(cluster: Cluster): PodAntiAffinity | undefined {
  const config = cluster.spec.affinity;
  if (config?.enablePodAntiAffinity === false) return undefined;
  const term: PodAffinityTerm = {
    labelSelector: {
      matchExpressions: [
        { key: labels.cluster, operator: "In", values: [clusterName(cluster)] },
        { key: labels.podRole, operator: "In", values: ["instance"] },
      ],
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
