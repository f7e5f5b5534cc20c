import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { PostgresStatus } from "../../../src/api/pg-status.ts";
import { closeStage, openStage, type RunningOperator, type Scene, type World } from "./world.ts";

let world: World;
let scene: Scene;
let operator: RunningOperator;
/** Name of the cluster of the test, healthy with three instances of which the first is primary. */
let c: string;

beforeAll(async () => {
  ({ world, scene, operator } = await openStage());
});

beforeEach(async () => {
  c = await scene.createHealthy("e");
});

afterAll(() => closeStage({ world, scene, operator }));

/** What an instance tells of itself from now on. */
function tells(serial: number, status: Partial<PostgresStatus>): void {
  const instance = scene.node.instances.get(`${c}-${serial}`);
  if (!instance) throw new Error(`${c}-${serial} does not run`);
  instance.override = status;
}

/** The primary's node is gone for good; who takes over. */
async function successor(): Promise<string | undefined> {
  scene.node.holdPods.add(`${c}-1`);
  await scene.node.killPod(`${c}-1`);
  const { status } = await scene.waitStatus(
    c,
    "a successor",
    (it) => it.currentPrimary !== `${c}-1` && it.currentPrimary === it.targetPrimary,
  );
  return status?.currentPrimary;
}

describe("an election", () => {
  it("passes over a fenced instance, however much it has received", async () => {
    tells(3, { receivedLsn: "0/9000000" });
    await scene.annotate(c, { "cnpg.io/fencedInstances": JSON.stringify([`${c}-3`]) });
    expect(await successor()).toBe(`${c}-2`);
  });

  it("passes over an instance whose position can't be read", async () => {
    tells(3, { receivedLsn: "far ahead", replayLsn: "" });
    expect(await successor()).toBe(`${c}-2`);
  });

  it("passes over an instance that is being rewound", async () => {
    tells(3, { receivedLsn: "0/9000000", isPgRewindRunning: true });
    expect(await successor()).toBe(`${c}-2`);
  });

  it("counts what an instance has replayed when it has received nothing since its start", async () => {
    tells(2, { receivedLsn: "", replayLsn: "0/7000000" });
    tells(3, { receivedLsn: "0/6000000", replayLsn: "0/6000000" });
    expect(await successor()).toBe(`${c}-2`);
  });

  it("lets the timeline decide between instances with the same WAL", async () => {
    tells(2, { timeLineID: 1 });
    tells(3, { timeLineID: 2 });
    expect(await successor()).toBe(`${c}-3`);
  });
});
