import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import type { InstanceContext } from "../../../src/instance/instance-context.ts";
import { createInstanceState } from "../../../src/instance/instance-state.ts";
import { createClusterStatusWriter } from "../../../src/instance/reconcile/cluster-status.ts";
import { resources } from "../../../src/kube/resources.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createFakeKubeApi } from "../../support/fake-kube-api.ts";
import { captureLogs } from "../../support/log-capture.ts";

const key = { namespace: "ns", name: "c" };

function world(targetPrimary: string) {
  const clock = createFakeClock();
  const kube = createFakeKubeApi({ clock });
  kube.seed(resources.clusters, {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Cluster",
    metadata: key,
    spec: { instances: 3 },
    status: { currentPrimary: "c-2", targetPrimary },
  } as unknown as Cluster);
  const state = createInstanceState();
  state.cluster = kube.peek(resources.clusters, key);
  const context = {
    kube,
    clock,
    state,
    settings: { podName: "c-1", namespace: "ns", clusterName: "c" },
    logger: captureLogs().logger,
  } as unknown as InstanceContext;
  const events: { reason: string; message: string }[] = [];
  const record = (_: unknown, event: { reason: string; message: string }) => void events.push(event);
  const status = createClusterStatusWriter(context, () => undefined, { record });
  const current = () => kube.peek(resources.clusters, key)?.status?.currentPrimary;
  return { kube, status, current, events, signal: new AbortController().signal };
}

describe("declineTarget", () => {
  test("the target gives its place back, and an event tells why when the phase's reason is another by now", async () => {
    const { kube, status, events, signal } = world("c-1");
    await status.declineTarget("c-3 has more", signal);
    expect(kube.peek(resources.clusters, key)?.status).toMatchObject({
      currentPrimary: "c-2",
      targetPrimary: "pending",
      phaseReason: "c-1 is not promoted: c-3 has more",
    });
    expect(events).toEqual([
      { type: "Warning", reason: "PromotionDeclined", message: "c-1 is not promoted: c-3 has more" },
    ]);
  });

  test("the place of another one is left alone", async () => {
    const { kube, status, events, signal } = world("c-3");
    await status.declineTarget("c-3 has more", signal);
    expect(events).toEqual([]);
    expect(kube.peek(resources.clusters, key)?.status?.targetPrimary).toBe("c-3");
    expect(kube.requests.map((request) => request.verb)).toEqual(["get"]);
  });
});

describe("claimPrimary", () => {
  test("the target that holds the lease claims with one request", async () => {
    const { kube, status, current, signal } = world("c-1");
    await status.claimPrimary(() => true, signal);
    expect(current()).toBe("c-1");
    expect(kube.requests.map((request) => request.verb)).toEqual(["patch"]);
  });

  test("a target that moved meanwhile is seen though the copy at hand is outdated", async () => {
    const { kube, status, current, signal } = world("c-1");
    const body = { status: { targetPrimary: "c-3" } };
    await kube.patch(resources.clusters, key, { type: "merge", body }, { subresource: "status" });
    await expect(status.claimPrimary(() => true, signal)).rejects.toThrow("status.targetPrimary is c-3");
    expect(current()).toBe("c-2");
  });

  test("without the lease nothing is claimed", async () => {
    const { status, current, signal } = world("c-1");
    await expect(status.claimPrimary(() => false, signal)).rejects.toThrow("does not hold the primary lease");
    expect(current()).toBe("c-2");
  });
});
