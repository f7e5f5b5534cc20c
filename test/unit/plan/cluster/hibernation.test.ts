import { describe, expect, it } from "vitest";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import { phases } from "../../../../src/api/phases.ts";
import { aHealthyCluster, aPod, plan, stepsOf, withPods } from "./fixtures.ts";

const type = "cnpg.io/hibernation";

/** A cluster whose annotation says `value`; `begun` is the reason its condition has so far. */
function asked(value: string | undefined, begun?: string, phase: string = phases.healthy) {
  const { cluster, observed } = aHealthyCluster();
  const condition = {
    type,
    status: "False" as const,
    reason: begun ?? "",
    message: "",
    lastTransitionTime: "2026-01-01T00:00:00Z",
  };
  const given: Cluster = {
    ...cluster,
    metadata: { ...cluster.metadata, annotations: value === undefined ? {} : { [type]: value } },
    status: { ...cluster.status, phase, ...(begun ? { conditions: [condition] } : {}) },
  };
  return { cluster: given, observed };
}

const reasonOf = (status: Cluster["status"]) => status?.conditions?.find((it) => it.type === type)?.reason;

describe("hibernation", () => {
  it("takes the primary first", () => {
    const { cluster, observed } = asked("on");
    const result = plan(cluster, observed);
    expect(stepsOf(result.actions)).toEqual(["deletePod c-1"]);
    expect(reasonOf(result.status)).toBe("DeletingPods");
    expect(result.requeueAfterMs).toBe(5_000);
  });

  it("waits for one pod to be gone before the next", () => {
    const { cluster, observed } = asked("on", "DeletingPods");
    const pods = [aPod(cluster, 1, "terminating"), ...observed.pods.slice(1)];
    const result = plan(cluster, withPods(observed, pods));
    expect(stepsOf(result.actions)).toEqual([]);
    expect(reasonOf(result.status)).toBe("WaitingPodsDeletion");
  });

  it("goes on with the replicas although the primary is gone, and starts no failover", () => {
    const { cluster, observed } = asked("on", "WaitingPodsDeletion");
    const result = plan(cluster, withPods(observed, observed.pods.slice(1)));
    expect(stepsOf(result.actions)).toEqual(["deletePod c-2"]);
    expect(result.status.targetPrimary).toBe("c-1");
  });

  it("is done when no pod is left, whatever the phase, and then wants nothing", () => {
    const { cluster, observed } = asked("on", "WaitingPodsDeletion", phases.waitingForInstances);
    const result = plan(cluster, withPods(observed, []));
    expect(result.status.conditions?.find((it) => it.type === type)).toMatchObject({
      status: "True",
      reason: "Hibernated",
    });
    expect(stepsOf(result.actions)).toEqual([]);
    expect(result.requeueAfterMs).toBeUndefined();
  });

  it("does not start on a cluster that is not healthy", () => {
    const { cluster, observed } = asked("on", undefined, phases.upgrading);
    const result = plan(cluster, observed);
    expect(reasonOf(result.status)).toBe("WaitingForHealthy");
    expect(stepsOf(result.actions)).toEqual([]);
  });

  it.each([undefined, "off"])("ends with the annotation %s, and the pods come back, the primary first", (value) => {
    const { cluster, observed } = asked(value, "Hibernated");
    const result = plan(cluster, withPods(observed, []));
    expect(reasonOf(result.status)).toBeUndefined();
    expect(stepsOf(result.actions)).toEqual(["createPod c-1"]);
  });
});
