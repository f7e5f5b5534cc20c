import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { paths } from "../../../src/api/constants.ts";
import { annotations } from "../../../src/api/labels.ts";
import { describeVolumeFailure } from "../../../src/api/volume-failure.ts";
import { resources } from "../../../src/kube/resources.ts";
import type { FakeInstance } from "./fake-instance.ts";
import { closeStage, openStage, type RunningOperator, type Scene, type World } from "./world.ts";

let world: World;
let scene: Scene;
let operator: RunningOperator;
let count = 0;
/** Name of the cluster of the test, healthy with three instances. */
let c: string;

beforeAll(async () => {
  ({ world, scene, operator } = await openStage());
});

beforeEach(async () => {
  count += 1;
  c = `h${count}`;
  await scene.create(c);
  await scene.waitHealthy(c, 3);
});

afterAll(() => closeStage({ world, scene, operator }));

function instance(serial: number): FakeInstance {
  const found = scene.node.instances.get(`${c}-${serial}`);
  if (!found) throw new Error(`${c}-${serial} does not run`);
  return found;
}

/** What an instance manager whose server was killed for a dead disk writes. */
async function giveLeaseBack(serial: number): Promise<void> {
  const voters = [1, 2, 3].map((it) => `${c}-${it}`);
  const text = JSON.stringify({ voters, holderUID: "uid", releasedBy: `${c}-${serial}` });
  const body = {
    metadata: { annotations: { [annotations.leaseVoters]: text } },
    spec: { holderIdentity: "", leaseTransitions: 1, renewTime: new Date().toISOString().replace("Z", "000Z") },
  };
  await world.api.patch(resources.leases, { namespace: scene.namespace, name: c }, { type: "merge", body });
}

/** Nobody hears from the primary any more. */
function cutStandbys(): void {
  for (const serial of [2, 3]) instance(serial).override = { isWalReceiverActive: false };
}

/** The promise is 30 s, and 10 s of them are over before a lease is given back. Without a reason nobody looks for a minute. */
const soonMs = 20_000;

it("a primary that takes the question and never answers is replaced soon after it gave its lease back", async () => {
  instance(1).hangs = true;
  cutStandbys();
  await giveLeaseBack(1);
  const isReplaced = (name: string | undefined) => name !== undefined && name !== "" && name !== `${c}-1`;
  await scene.waitStatus(c, "another primary", (it) => isReplaced(it.currentPrimary), soonMs);
  // Kubernetes never counted it as anything but Ready.
  const pod = await scene.find(resources.pods, `${c}-1`);
  expect(pod?.status?.conditions?.find((it) => it.type === "Ready")?.status).toBe("True");
});

it("a primary that says that its volume takes no writes is replaced, and its pod made anew when the disk stays dead", async () => {
  let silentMs = 12_000;
  const answer = () => ({ status: 503, body: JSON.stringify(describeVolumeFailure([paths.dataVolume], silentMs)) });
  const first = instance(1);
  first.answers["GET /pg/status"] = answer;
  const before = await scene.find(resources.pods, `${c}-1`);
  cutStandbys();
  await giveLeaseBack(1);
  await scene.waitStatus(c, "another primary", (it) => (it.currentPrimary ?? "") > `${c}-1`, soonMs);
  for (const serial of [2, 3]) instance(serial).override = {};
  await scene.node.setReady(`${c}-1`, false);
  // The disk may come back, and then the instance need not be moved.
  const calls = first.calls;
  await expect.poll(() => first.calls, { timeout: 30_000 }).toBeGreaterThan(calls + 3);
  expect((await scene.find(resources.pods, `${c}-1`))?.metadata.uid).toBe(before?.metadata.uid);
  silentMs = 61_000;
  await expect
    .poll(async () => (await scene.find(resources.pods, `${c}-1`))?.metadata.uid, { timeout: 30_000 })
    .not.toBe(before?.metadata.uid);
  const after = await scene.waitHealthy(c, 3);
  expect(after.status?.currentPrimary).not.toBe(`${c}-1`);
  const events = await scene.events();
  const told = events.filter((it) => it.reason === "DeadVolume" && it.involvedObject.name === c);
  expect(told.map((it) => it.message).join()).toContain(
    `volume ${c}-1 (${paths.dataVolume}) has taken no write for 61 s`,
  );
});
