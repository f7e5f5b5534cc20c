import type { ClusterStatus } from "./conditions.ts";
import type { Pass } from "./pass.ts";

type Topology = NonNullable<ClusterStatus["topology"]>;

/**
 * Labels of the nodes that instances run on, for the choice of synchronous standbys. A pod that has no node yet is left
 * out; one on a node that is not known makes the whole picture unusable.
 */
export function planTopology(pass: Pass): Topology {
  const keys = pass.cluster.spec.postgresql?.syncReplicaElectionConstraint?.nodeLabelsAntiAffinity ?? [];
  const instances: NonNullable<Topology["instances"]> = {};
  const nodesUsed = new Set<string>();
  for (const pod of pass.observed.pods) {
    const nodeName = pod.spec?.nodeName;
    if (!nodeName) continue;
    const node = pass.observed.nodes.get(nodeName);
    if (!node) return {};
    nodesUsed.add(nodeName);
    const nodeLabels = node.metadata.labels ?? {};
    instances[pod.metadata.name ?? ""] = Object.fromEntries(
      keys.flatMap((key): [string, string][] => (nodeLabels[key] === undefined ? [] : [[key, nodeLabels[key]]])),
    );
  }
  return { successfullyExtracted: true, nodesUsed: nodesUsed.size, instances };
}
