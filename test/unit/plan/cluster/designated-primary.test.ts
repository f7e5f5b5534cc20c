import { describe, expect, it } from "vitest";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import type { Pod } from "../../../../src/api/generated/kubernetes.ts";
import type { ObservedCluster, PolledInstance } from "../../../../src/plan/cluster/observed.ts";
import { aHealthyCluster, answered, aStatus, plan, silent, stepsOf } from "./fixtures.ts";

interface Case {
  cluster: Cluster;
  observed: ObservedCluster;
}

const target = ({ cluster, observed }: Case) => plan(cluster, observed).status.targetPrimary;

describe("a replica cluster", () => {
  const replica = { enabled: true, source: "origin" };

  /** Three standbys, of which the first is the designated primary and is as given. */
  function designated(change: (pod: Pod) => PolledInstance): Case {
    const { cluster, observed } = aHealthyCluster({ replica });
    const instances = observed.pods.map((pod, index) =>
      index === 0 ? change(pod) : answered(pod, aStatus({ isWalReceiverActive: false })),
    );
    return { cluster, observed: { ...observed, instances } };
  }

  const unready = (pod: Pod): Pod => ({
    ...pod,
    status: { ...pod.status, conditions: [{ type: "Ready", status: "False" }] },
  });

  it("gets another designated primary when its pod is there, but neither ready nor answering", () => {
    const given = designated((pod) => silent(unready(pod)));
    const result = plan(given.cluster, given.observed);
    expect(result.status).toMatchObject({ targetPrimary: "c-2", phaseReason: "Failing over to c-2" });
    expect(stepsOf(result.actions)).toEqual(["event FailingOver"]);
  });

  it.each<[string, Case]>([
    ["Ready and only silent to the operator", designated((pod) => silent(pod))],
    ["answering and not ready yet", designated((pod) => answered(unready(pod), aStatus()))],
    ["well", designated((pod) => answered(pod, aStatus()))],
  ])("keeps one that is %s", (_, given) => {
    expect(target(given)).toBe("c-1");
  });

  it("moves its designated primary away from a node that is drained", () => {
    const { cluster, observed } = designated((pod) => answered(pod, aStatus()));
    const instances = observed.instances.map((it, index) => ({
      ...(it.kind === "answered" && index > 0 ? { ...it, status: aStatus({ isWalReceiverActive: true }) } : it),
      pod: { ...it.pod, spec: { ...it.pod.spec, nodeName: index === 0 ? "n" : "m" } } as Pod,
    }));
    const nodes = new Map([
      ["n", { apiVersion: "v1", kind: "Node", metadata: { name: "n" }, spec: { unschedulable: true } }],
    ]);
    const moved = { cluster, observed: { ...observed, instances, nodes } as ObservedCluster };
    expect(target(moved)).toBe("c-2");
  });
});
