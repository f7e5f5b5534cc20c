import { afterAll, beforeAll, expect, it } from "vitest";
import { somePasses, synchronous, writeQuorum } from "./quorum.ts";
import { closeStage, openStage, type RunningOperator, type Scene, type World } from "./world.ts";

let world: World;
let scene: Scene;
let operator: RunningOperator;

beforeAll(async () => {
  ({ world, scene, operator } = await openStage());
  await scene.create("c", { postgresql: { synchronous } });
  await scene.waitHealthy("c", 3);
});

afterAll(() => closeStage({ world, scene, operator }));

const record = (status: Parameters<typeof writeQuorum>[3]) => writeQuorum(world, scene, "c", status);

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
  await somePasses(scene, "c-2");
  const held = (await scene.cluster("c")).status;
  expect(held).toMatchObject({ targetPrimary: "c-1", currentPrimary: "c-1" });
  expect(held?.currentPrimaryFailingSinceTimestamp).toBe(status?.currentPrimaryFailingSinceTimestamp);
  await scene.node.setReady("c-3", false);
  await scene.waitStatus("c", "one ready instance", (it) => it.readyInstances === 1);
  await record({ primary: "c-1" });
  await somePasses(scene, "c-2");
  expect((await scene.cluster("c")).status?.targetPrimary).toBe("c-1");
  await scene.node.setReady("c-3", true);
  await scene.waitStatus("c", "a successor", (it) => it.currentPrimary === "c-2");
});
