import { describe, expect, it } from "vitest";
import type { Lease } from "../../../../src/api/generated/kubernetes.ts";
import { annotations } from "../../../../src/api/labels.ts";
import { formatLeaseVoters } from "../../../../src/api/lease-voters.ts";
import type { ObservedCluster } from "../../../../src/plan/cluster/observed.ts";
import { planBeforeStatusCalls } from "../../../../src/plan/cluster/plan-cluster.ts";
import { aHealthyCluster, answered, aStatus, healthyStatus, now, plan, withPods } from "./fixtures.ts";

function leaseOf(observed: ObservedCluster, spec: NonNullable<Lease["spec"]>, voters?: string[]): Lease {
  const { lease } = observed;
  if (!lease) throw new Error("the fixture has a lease");
  const marks = voters ? { [annotations.leaseVoters]: formatLeaseVoters({ voters, holderUID: "u" }) } : {};
  return { ...lease, metadata: { ...lease.metadata, annotations: { ...lease.metadata.annotations, ...marks } }, spec };
}

/** `c-1`, the primary, is gone; a person names `c-3`. */
function lost(
  lease: { spec?: NonNullable<Lease["spec"]>; voters?: string[] },
  status: { targetPrimary?: string } = {},
) {
  const { cluster, observed } = aHealthyCluster();
  const pods = observed.pods.slice(1);
  return {
    cluster: {
      ...cluster,
      metadata: { ...cluster.metadata, annotations: { [annotations.namedPrimary]: "c-3" } },
      status: { ...healthyStatus(), ...status },
    },
    observed: {
      ...withPods(observed, pods),
      instances: pods.map((pod) => answered(pod, aStatus({ isWalReceiverActive: false }))),
      lease: leaseOf(observed, lease.spec ?? {}, lease.voters),
    },
  };
}

describe("the instance that a person named", () => {
  it("is the successor where the lease was made anew", () => {
    const { cluster, observed } = lost({});
    expect(plan(cluster, observed).status.targetPrimary).toBe("c-3");
  });

  it("is the successor where no voter is left", () => {
    const spec = { holderIdentity: "c-9", leaseTransitions: 3 };
    const { cluster, observed } = lost({ spec, voters: ["c-8", "c-9"] });
    expect(plan(cluster, observed).status.targetPrimary).toBe("c-3");
  });

  it("counts for nothing while a voter is left", () => {
    const spec = { holderIdentity: "c-1", leaseTransitions: 3 };
    const { cluster, observed } = lost({ spec, voters: ["c-1", "c-2"] });
    expect(plan(cluster, observed).status.targetPrimary).toBe("c-2");
  });

  describe("while a voter is left", () => {
    const spec = { holderIdentity: "", leaseTransitions: 3 };
    const lease = { spec, voters: ["c-1", "c-2", "c-3"] };
    const quorum = { postgresql: { synchronous: { method: "any" as const, number: 1, failoverQuorum: true } } };

    it.each([
      ["is the successor once a failover has begun that nobody finished", "pending", lease, {}, "c-3"],
      ["goes before the failover quorum then", "pending", lease, quorum, "c-3"],
      ["counts for nothing before a failover has begun", "c-1", lease, {}, "c-2"],
      ["does not go before the failover quorum before that", "c-1", lease, quorum, "c-1"],
      ["is passed over when it can't take the lease", "pending", { spec, voters: ["c-1", "c-2"] }, {}, "c-2"],
    ])("%s", (_, targetPrimary, held, settings, expected) => {
      const { cluster, observed } = lost(held, { targetPrimary });
      const asked = { ...cluster, spec: { ...cluster.spec, ...settings } };
      expect(plan(asked, observed).status.targetPrimary).toBe(expected);
    });
  });

  it("replaces a successor that may not take the lease", () => {
    const { cluster, observed } = lost({}, { targetPrimary: "c-2" });
    expect(planBeforeStatusCalls(cluster, observed, now).status.targetPrimary).toBe("c-3");
  });

  it("is forgotten once it is the primary", () => {
    const { cluster, observed } = aHealthyCluster();
    const named = { ...cluster, metadata: { ...cluster.metadata, annotations: { [annotations.namedPrimary]: "c-1" } } };
    const spec = { holderIdentity: "c-1", leaseTransitions: 1 };
    const result = plan(named, { ...observed, lease: leaseOf(observed, spec, ["c-1"]) });
    expect(result.actions.filter((it) => it.kind === "patchCluster")).toMatchObject([
      { patch: { metadata: { annotations: { [annotations.namedPrimary]: null } } } },
    ]);
    const early = plan(named, { ...observed, lease: leaseOf(observed, {}) });
    expect(early.actions.some((it) => it.kind === "patchCluster")).toBe(false);
  });
});
