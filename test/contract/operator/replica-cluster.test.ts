import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { replicaConditions, replicaConditionTexts } from "../../../src/api/replica-conditions.ts";
import { resources } from "../../../src/kube/resources.ts";
import { parsePromotionToken } from "../../../src/postgres/promotion-token.ts";
import type { FakeInstance } from "./fake-instance.ts";
import { closeStage, endedPasses, openStage, type RunningOperator, type Scene, type World } from "./world.ts";

let world: World;
let scene: Scene;
let operator: RunningOperator;
/** Name of the cluster of the test, healthy with two instances. */
let c: string;

const externalClusters = [{ name: "origin", connectionParameters: { host: "origin" } }];
const segment = "000000010000000000000005";

function controlData(state: string): string {
  const text = [
    "Database system identifier:           7000000000000000001",
    `Database cluster state:               ${state}`,
    "Latest checkpoint's REDO location:    0/5000028",
    `Latest checkpoint's REDO WAL file:    ${segment}`,
    "Latest checkpoint's TimeLineID:       1",
    "Time of latest checkpoint:            Fri 02 Jan 2026 03:04:05 AM UTC",
  ].join("\n");
  return JSON.stringify({ data: text });
}

beforeAll(async () => {
  ({ world, scene, operator } = await openStage());
});

beforeEach(async () => {
  c = await scene.createHealthy("r", { instances: 2, externalClusters });
});

afterAll(() => closeStage({ world, scene, operator }));

function instance(serial: number): FakeInstance {
  const found = scene.node.instances.get(`${c}-${serial}`);
  if (!found) throw new Error(`${c}-${serial} does not run`);
  return found;
}

const fence = async () => (await scene.cluster(c)).metadata.annotations?.["cnpg.io/fencedInstances"];
const condition = async (type: string) => (await scene.cluster(c)).status?.conditions?.find((it) => it.type === type);

/** Begins the demotion, and plays what instances do about a fence and a transition. */
async function beginDemotion(): Promise<void> {
  await scene.patchSpec(c, { replica: { enabled: true, source: "origin" } });
  await expect.poll(fence, { timeout: 20_000 }).toBe('["*"]');
  for (const serial of [1, 2]) {
    instance(serial).override = { mightBeUnavailable: true, isPrimary: false, isWalReceiverActive: false };
    await scene.node.setReady(`${c}-${serial}`, false);
  }
}

async function completeTransition(): Promise<void> {
  const { conditions = [], ...status } = (await scene.cluster(c)).status ?? {};
  const done = { status: "True" as const, ...replicaConditionTexts.transitionDone };
  const next = conditions.map((it) => (it.type === replicaConditions.transition ? { ...it, ...done } : it));
  await scene.patchStatus(c, { conditions: next, currentPrimary: status.currentPrimary });
}

describe("a primary cluster that is to follow another", () => {
  it("is fenced, demoted with a token, and let go again", async () => {
    const archived: string[] = [];
    let state = "shutting down";
    instance(1).answers = {
      "GET /pg/controldata": () => ({ status: 200, body: controlData(state) }),
      "POST /pg/archive/partial": () => {
        archived.push(segment);
        return { status: 200, body: JSON.stringify({ data: segment }) };
      },
    };
    await beginDemotion();
    expect(await condition(replicaConditions.transition)).toMatchObject({
      status: "False",
      ...replicaConditionTexts.begun,
    });
    expect(await condition(replicaConditions.fencing)).toMatchObject({
      status: "True",
      ...replicaConditionTexts.begun,
    });
    expect(await condition(replicaConditions.switch)).toMatchObject({
      status: "False",
      ...replicaConditionTexts.switchBegun,
    });
    expect((await scene.cluster(c)).status?.switchReplicaClusterStatus).toEqual({ inProgress: true });
    expect((await scene.cluster(c)).status?.targetPrimary).toBe(`${c}-1`);
    await completeTransition();
    const calls = instance(1).calls;
    await expect.poll(() => instance(1).calls, { timeout: 20_000 }).toBeGreaterThan(calls);
    expect(archived).toEqual([]);
    state = "shut down";
    await scene.annotate(c, { "cnpg.io/reloadedAt": "now" });
    const { status } = await scene.waitStatus(c, "the token", (it) => it.demotionToken !== undefined);
    expect(parsePromotionToken(status?.demotionToken ?? "")).toEqual({
      latestCheckpointTimelineID: "1",
      redoWalFile: segment,
      databaseSystemIdentifier: "7000000000000000001",
      latestCheckpointREDOLocation: "0/5000028",
      timeOfLatestCheckpoint: "Fri 02 Jan 2026 03:04:05 AM UTC",
      operatorVersion: "1.30.0",
    });
    await expect.poll(fence, { timeout: 20_000 }).toBeUndefined();
    await scene.waitStatus(c, "the end", (it) => it.switchReplicaClusterStatus?.inProgress !== true);
    // A pass that could not write the token, or does not see it yet, asks again, for the same segment.
    expect([...new Set(archived)]).toEqual([segment]);
    expect(await condition(replicaConditions.transition)).toBeUndefined();
    expect(await condition(replicaConditions.fencing)).toBeUndefined();
    expect(await condition(replicaConditions.switch)).toMatchObject({
      status: "True",
      ...replicaConditionTexts.switchDone,
    });
    for (const serial of [1, 2]) {
      instance(serial).override = { isPrimary: false };
      await scene.node.setReady(`${c}-${serial}`, true);
    }
    const healthy = await scene.waitHealthy(c, 2);
    expect(healthy.status?.demotionToken).toBe(status?.demotionToken);
    expect((await scene.find(resources.pods, `${c}-1`))?.metadata.labels?.["cnpg.io/instanceRole"]).toBe("primary");
  });

  it("keeps its fence while the segment can't be archived", async () => {
    let answer = { status: 400, body: JSON.stringify({ error: { code: "ERROR_WHILE_EXECUTING_WAL_ARCHIVE" } }) };
    instance(1).answers = {
      "GET /pg/controldata": () => ({ status: 200, body: controlData("shut down") }),
      "POST /pg/archive/partial": () => answer,
    };
    await beginDemotion();
    await completeTransition();
    await expect
      .poll(() => operator.logs.records.filter((it) => String(it.fields["error"]).includes("WAL_ARCHIVE")).length, {
        timeout: 20_000,
      })
      .toBeGreaterThan(0);
    expect(await fence()).toBe('["*"]');
    expect((await scene.cluster(c)).status?.demotionToken).toBeUndefined();
    answer = { status: 200, body: JSON.stringify({ data: segment }) };
    await scene.annotate(c, { "cnpg.io/reloadedAt": "again" });
    await scene.waitStatus(c, "the token", (it) => it.demotionToken !== undefined);
    await expect.poll(fence, { timeout: 20_000 }).toBeUndefined();
  });
});

describe("a promotion with a token", () => {
  it("holds the operator back until the instance has recorded the token", async () => {
    const content = {
      latestCheckpointTimelineID: "1",
      redoWalFile: segment,
      databaseSystemIdentifier: "7000000000000000001",
      latestCheckpointREDOLocation: "0/5000028",
      timeOfLatestCheckpoint: "now",
      operatorVersion: "1.30.0",
    };
    const promotionToken = Buffer.from(JSON.stringify(content)).toString("base64");
    await scene.patchSpec(c, { replica: { enabled: false, source: "origin", promotionToken } });
    const { status } = await scene.waitStatus(c, "the phase", (it) => it.phase === "Promoting to primary cluster");
    expect(status?.phaseReason).toBe("Replica cluster promotion in progress");
    await scene.node.killPod(`${c}-2`);
    await scene.annotate(c, { "cnpg.io/reloadedAt": "now" });
    await scene.patchStatus(c, { lastPromotionToken: promotionToken });
    await scene.waitHealthy(c, 2);
    await scene.patchSpec(c, { replica: { promotionToken: null } });
    await scene.waitStatus(c, "a clean status", (it) => it.lastPromotionToken === undefined);
  });
});

describe("a replica cluster", () => {
  it("replaces a designated primary that is neither ready nor answers", async () => {
    await scene.patchSpec(c, { replica: { enabled: false, source: "origin" } });
    instance(1).override = { isPrimary: false };
    await scene.patchSpec(c, { replica: { enabled: true, source: "origin" } });
    await scene.waitHealthy(c, 2);
    instance(1).status = null;
    instance(2).override = { isWalReceiverActive: false };
    await scene.node.setReady(`${c}-1`, false);
    const { status } = await scene.waitStatus(c, "a successor", (it) => it.targetPrimary === `${c}-2`);
    expect(status?.phaseReason).toBe(`Failing over to ${c}-2`);
    const told = async () =>
      (await scene.events())
        .filter((it) => it.involvedObject.name === c && it.reason === "FailingOver")
        .map((it) => it.message);
    await expect
      .poll(told, { timeout: 20_000 })
      .toEqual([`Current target primary isn't healthy, failing over from ${c}-1 to ${c}-2`]);
  });

  it("keeps a designated primary that answers, although it is not ready", async () => {
    await scene.patchSpec(c, { replica: { enabled: false, source: "origin" } });
    instance(1).override = { isPrimary: false };
    await scene.patchSpec(c, { replica: { enabled: true, source: "origin" } });
    await scene.waitHealthy(c, 2);
    await scene.node.setReady(`${c}-1`, false);
    await scene.waitStatus(c, "the unready one", (it) => it.readyInstances === 1);
    const passes = endedPasses(operator, c).length;
    await scene.annotate(c, { "cnpg.io/reloadedAt": "now" });
    await expect.poll(() => endedPasses(operator, c).length, { timeout: 20_000 }).toBeGreaterThan(passes + 1);
    expect((await scene.cluster(c)).status?.targetPrimary).toBe(`${c}-1`);
  });
});
