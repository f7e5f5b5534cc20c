import { describe, expect, it } from "vitest";
import type { Node } from "../../../../src/api/generated/kubernetes.ts";
import { aHealthyCluster, plan, withPods } from "./fixtures.ts";

const zone = "topology.kubernetes.io/zone";
const spec = {
  postgresql: { syncReplicaElectionConstraint: { enabled: true, nodeLabelsAntiAffinity: [zone, "rack"] } },
};

function aNode(name: string, labels: Record<string, string>): [string, Node] {
  return [name, { apiVersion: "v1", kind: "Node", metadata: { name, labels } }];
}

const nodes = new Map([
  aNode("node-1", { [zone]: "a", rack: "r1", other: "x" }),
  aNode("node-2", { [zone]: "b" }),
  aNode("node-3", { [zone]: "b" }),
]);
const [first, second, third] = [{ [zone]: "a", rack: "r1" }, { [zone]: "b" }, { [zone]: "b" }];

describe("the topology of a cluster", () => {
  it("tells the wanted labels of the node of each instance", () => {
    const { cluster, observed } = aHealthyCluster(spec);
    expect(plan(cluster, { ...observed, nodes }).status.topology).toEqual({
      successfullyExtracted: true,
      nodesUsed: 3,
      instances: { "c-1": first, "c-2": second, "c-3": third },
    });
  });

  it("leaves out a pod that has no node yet, and keeps what it knows of the others", () => {
    const { cluster, observed } = aHealthyCluster(spec);
    const pods = observed.pods.map((pod) => {
      if (pod.metadata.name !== "c-3" || !pod.spec) return pod;
      const { nodeName: _, ...unscheduled } = pod.spec;
      return { ...pod, spec: unscheduled };
    });
    expect(plan(cluster, { ...withPods(observed, pods), nodes }).status.topology).toEqual({
      successfullyExtracted: true,
      nodesUsed: 2,
      instances: { "c-1": first, "c-2": second },
    });
  });

  it("is unusable as a whole when a node is not known, as synchronous standbys must not be chosen by half of it", () => {
    const { cluster, observed } = aHealthyCluster(spec);
    const known = new Map([...nodes].filter(([name]) => name !== "node-2"));
    expect(plan(cluster, { ...observed, nodes: known }).status.topology).toEqual({});
  });
});
