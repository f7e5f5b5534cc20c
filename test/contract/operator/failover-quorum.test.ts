import { afterAll, beforeAll, expect, it } from "vitest";
import type { FailoverQuorum } from "../../../src/api/generated/failoverquorum.ts";
import { resources } from "../../../src/kube/resources.ts";
import { closeStage, openStage, type RunningOperator, type Scene, type World } from "./world.ts";

let world: World;
let scene: Scene;
let operator: RunningOperator;

const synchronous = { method: "any" as const, number: 1, failoverQuorum: true };

beforeAll(async () => {
  ({ world, scene, operator } = await openStage());
  await scene.create("c", { postgresql: { synchronous } });
  await scene.waitHealthy("c", 3);
});

afterAll(() => closeStage({ world, scene, operator }));

/** Writes the record as the primary does. */
async function record(status: NonNullable<FailoverQuorum["status"]>): Promise<void> {
  const key = { namespace: scene.namespace, name: "c" };
  const body = { status };
  await world.api.patch(resources.failoverQuorums, key, { type: "merge", body }, { subresource: "status" });
}

/** Waits until the operator has asked the instances a few times more. */
async function somePasses(): Promise<void> {
  const calls = () => scene.node.instances.get("c-2")?.calls ?? 0;
  const before = calls();
  await expect.poll(calls, { timeout: 30_000 }).toBeGreaterThan(before + 3);
}

it("a failover waits until the record lets it happen, and its delay does not start anew", async () => {
  await scene.patchSpec("c", { failoverDelay: 1 });
  // Of another primary: what that one's transactions waited for says nothing here.
  await record({ method: "ANY", standbyNames: ["c-2", "c-3"], standbyNumber: 1, primary: "c-2" });
  scene.node.holdPods.add("c-1");
  await scene.node.killPod("c-1");
  const { status } = await scene.waitStatus(
    "c",
    "the failure",
    (it) => it.currentPrimaryFailingSinceTimestamp !== undefined,
  );
  await somePasses();
  const held = (await scene.cluster("c")).status;
  expect(held).toMatchObject({ targetPrimary: "c-1", currentPrimary: "c-1" });
  expect(held?.currentPrimaryFailingSinceTimestamp).toBe(status?.currentPrimaryFailingSinceTimestamp);
  await scene.node.setReady("c-3", false);
  await scene.waitStatus("c", "one ready instance", (it) => it.readyInstances === 1);
  await record({ primary: "c-1" });
  await somePasses();
  expect((await scene.cluster("c")).status?.targetPrimary).toBe("c-1");
  await scene.node.setReady("c-3", true);
  await scene.waitStatus("c", "a successor", (it) => it.currentPrimary === "c-2");
});
