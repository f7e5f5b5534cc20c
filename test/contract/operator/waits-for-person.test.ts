import { afterAll, beforeAll, expect, it } from "vitest";
import { annotations } from "../../../src/api/labels.ts";
import { resources } from "../../../src/kube/resources.ts";
import { somePasses, synchronous, writeQuorum } from "./quorum.ts";
import { closeStage, openStage, type RunningOperator, type Scene, type World } from "./world.ts";

let world: World;
let scene: Scene;
let operator: RunningOperator;

beforeAll(async () => {
  ({ world, scene, operator } = await openStage());
  await scene.create("w", { postgresql: { synchronous } });
  await scene.waitHealthy("w", 3);
});

afterAll(() => closeStage({ world, scene, operator }));

/** The record of one primary; that of another one allows nothing. */
const record = (primary: string) =>
  writeQuorum(world, scene, "w", { method: "ANY", standbyNames: ["w-2", "w-3"], standbyNumber: 1, primary });

/** A Lease with a history, in which a person's word alone opens nothing. */
async function writeLease(): Promise<void> {
  const text = JSON.stringify({ voters: ["w-1", "w-2", "w-3"], holderUID: "uid" });
  const body = {
    metadata: { annotations: { [annotations.leaseVoters]: text } },
    spec: { holderIdentity: "w-1", leaseTransitions: 1, renewTime: new Date().toISOString().replace("Z", "000Z") },
  };
  await world.api.patch(resources.leases, { namespace: scene.namespace, name: "w" }, { type: "merge", body });
}

it("a denied failover says what a person can do, and a begun one follows whom they name", async () => {
  await writeLease();
  await record("w-9");
  scene.node.holdPods.add("w-1");
  await scene.node.killPod("w-1");
  const told = async () =>
    (await scene.events()).filter((it) => it.reason === "FailoverQuorumDenied").map((it) => it.message ?? "");
  await expect
    .poll(async () => (await told()).join(), { timeout: 30_000 })
    .toMatch(
      /^No failover from w-1: the failover quorum is of w-9\. .* set spec\.postgresql\.synchronous\.failoverQuorum to false$/,
    );
  // Before a failover has begun the word decides nothing.
  await scene.annotate("w", { [annotations.namedPrimary]: "w-3" });
  await somePasses(scene, "w-2");
  expect((await scene.cluster("w")).status?.targetPrimary).toBe("w-1");
  // Now one begins, and its candidate keeps giving the place back, as `PromotionDeclined` tells.
  const second = scene.node.instances.get("w-2");
  if (second) second.override = { isWalReceiverActive: true };
  await record("w-1");
  await scene.waitStatus("w", "a failover that waits", (it) => it.targetPrimary === "pending");
  await record("w-9");
  if (second) second.override = {};
  await scene.waitStatus("w", "whom the person named", (it) => it.currentPrimary === "w-3");
});
