import { describe, expect, it } from "vitest";
import type { FailoverQuorum } from "../../../../src/api/generated/failoverquorum.ts";
import { annotations } from "../../../../src/api/labels.ts";
import type { ObservedCluster, PolledInstance } from "../../../../src/plan/cluster/observed.ts";
import { aHealthyCluster, answered, type aPod, aStatus, healthyStatus, plan, stepsOf, withPods } from "./fixtures.ts";

const spec = { postgresql: { synchronous: { method: "any" as const, number: 1, failoverQuorum: true } } };

function record(status: NonNullable<FailoverQuorum["status"]>): FailoverQuorum {
  return {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "FailoverQuorum",
    metadata: {
      name: "c",
      namespace: "ns",
      ownerReferences: [
        { apiVersion: "postgresql.cnpg.io/v1", kind: "Cluster", name: "c", uid: "uid-c", controller: true },
      ],
    },
    status: { method: "ANY", standbyNames: ["c-2", "c-3"], standbyNumber: 1, primary: "c-1", ...status },
  };
}

/** A cluster of three whose primary's pod is gone, and whose standbys are as given. */
function without(primary: {
  quorum?: NonNullable<FailoverQuorum["status"]>;
  standbys?: (pod: ReturnType<typeof aPod>) => PolledInstance;
  target?: string;
  fenced?: string;
}): { cluster: ReturnType<typeof aHealthyCluster>["cluster"]; observed: ObservedCluster } {
  const { cluster, observed } = aHealthyCluster(spec);
  const pods = observed.pods.slice(1);
  const standby = primary.standbys ?? ((pod) => answered(pod, aStatus({ isWalReceiverActive: false })));
  const marks = primary.fenced ? { [annotations.fencedInstances]: JSON.stringify([primary.fenced]) } : {};
  return {
    cluster: {
      ...cluster,
      metadata: { ...cluster.metadata, annotations: marks },
      status: { ...healthyStatus(), ...(primary.target ? { targetPrimary: primary.target } : {}) },
    },
    observed: {
      ...withPods(observed, pods),
      instances: pods.map(standby),
      failoverQuorum: record(primary.quorum ?? {}),
    },
  };
}

const target = ({ cluster, observed }: ReturnType<typeof without>) => plan(cluster, observed).status.targetPrimary;
const unready = (name: string) => (pod: ReturnType<typeof aPod>) => {
  const it = answered(pod, aStatus({ isWalReceiverActive: false }));
  return pod.metadata.name === name ? { ...it, ready: false } : it;
};

describe("who counts for the failover quorum", () => {
  it("every standby that is ready, answers and may take over", () => {
    expect(target(without({}))).toBe("c-2");
  });

  it("not one that is not ready", () => {
    expect(target(without({ standbys: unready("c-3") }))).toBe("c-1");
  });

  it("not one that may not be chosen: what it alone holds would be lost", () => {
    expect(target(without({ fenced: "c-3" }))).toBe("c-1");
    const rewinding = (pod: ReturnType<typeof aPod>) =>
      answered(pod, aStatus({ isWalReceiverActive: false, isPgRewindRunning: pod.metadata.name === "c-2" }));
    expect(target(without({ standbys: rewinding }))).toBe("c-1");
  });

  it("nobody while the record is another primary's", () => {
    expect(target(without({ quorum: { primary: "c-2" } }))).toBe("c-1");
  });

  it("by what the record says, also when it does not name its primary", () => {
    const { cluster, observed } = without({});
    const { primary: _, ...status } = record({}).status ?? {};
    expect(target({ cluster, observed: { ...observed, failoverQuorum: { ...record({}), status } } })).toBe("c-2");
  });
});

describe("a failover that has begun", () => {
  it("is taken back when a standby that counted is gone", () => {
    const result = without({ target: "pending", standbys: unready("c-3") });
    expect(target(result)).toBe("c-1");
    expect(stepsOf(plan(result.cluster, result.observed).actions)).not.toContain("event FailoverTarget");
  });

  it("goes on while all are there", () => {
    expect(target(without({ target: "pending" }))).toBe("c-2");
  });
});
