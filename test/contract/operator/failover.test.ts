import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { resources } from "../../../src/kube/resources.ts";
import { openScene, type RunningOperator, type Scene, startOperator, startWorld, type World } from "./world.ts";

let world: World;
let scene: Scene;
let operator: RunningOperator;
let count = 0;
/** Name of the cluster of the test, healthy with three instances. */
let c: string;

beforeAll(async () => {
  world = await startWorld();
  scene = await openScene(world);
  operator = startOperator(world, scene.namespace);
});

beforeEach(async () => {
  count += 1;
  c = `f${count}`;
  await scene.create(c);
  await scene.waitHealthy(c, 3);
});

afterAll(async () => {
  await operator?.stop();
  await scene?.stop();
  await world?.stop();
});

async function reasons(): Promise<string[]> {
  const events = await scene.events();
  return events.filter((it) => it.involvedObject.name === c).map((it) => it.reason ?? "");
}

async function roles(): Promise<Record<string, string | undefined>> {
  const pods = await world.api.list(resources.pods, {
    namespace: scene.namespace,
    labelSelector: `cnpg.io/cluster=${c}`,
  });
  return Object.fromEntries(pods.map((it) => [it.metadata.name, it.metadata.labels?.["cnpg.io/instanceRole"]]));
}

describe("failover", () => {
  it("follows the loss of the primary's pod at once, and the old primary comes back as a replica", async () => {
    const second = scene.node.instances.get(`${c}-2`);
    if (second) second.override = { isWalReceiverActive: true };
    const began = Date.now();
    await scene.node.killPod(`${c}-1`);
    await scene.waitStatus(c, "a pending primary", (it) => it.targetPrimary === "pending");
    expect(Date.now() - began).toBeLessThan(600);
    if (second) second.override = {};
    const released = Date.now();
    await scene.waitStatus(
      c,
      "a new primary",
      (it) => it.currentPrimary === it.targetPrimary && it.currentPrimary !== `${c}-1`,
    );
    expect(Date.now() - released).toBeLessThan(1_000);
    const cluster = await scene.waitHealthy(c, 3);
    const primary = cluster.status?.currentPrimary ?? "";
    expect(await roles()).toEqual({
      [`${c}-1`]: "replica",
      [`${c}-2`]: "replica",
      [`${c}-3`]: "replica",
      [primary]: "primary",
    });
    await scene.waitStatus(c, "timeline", (it) => it.timelineID === 2);
    const told = await reasons();
    expect(told.filter((it) => it === "FailingOver")).toHaveLength(1);
    expect(told.filter((it) => it === "FailoverTarget")).toHaveLength(1);
  });

  it("prefers the standby that has received most", async () => {
    const third = scene.node.instances.get(`${c}-3`);
    if (third) third.override = { receivedLsn: "0/6000000" };
    await scene.node.killPod(`${c}-1`);
    await scene.waitStatus(c, "the successor", (it) => it.currentPrimary === `${c}-3`);
    await scene.waitHealthy(c, 3);
  });

  it("does not happen while the primary is Ready and only silent to the operator", async () => {
    const primary = scene.node.instances.get(`${c}-1`);
    if (primary) primary.status = null;
    await scene.annotate(c, { "cnpg.io/reloadedAt": "now" });
    await expect.poll(reasons, { timeout: 10_000 }).toContain("PrimaryStatusCheckFailed");
    expect((await scene.cluster(c)).status?.targetPrimary).toBe(`${c}-1`);
    await scene.node.setReady(`${c}-1`, false);
    await scene.waitStatus(c, "another primary", (it) => it.currentPrimary !== `${c}-1`);
  });

  it("does not happen while every ready instance is silent", async () => {
    for (const [name, instance] of scene.node.instances) if (name.startsWith(`${c}-`)) instance.status = null;
    await scene.annotate(c, { "cnpg.io/reloadedAt": "now" });
    const cluster = await scene.waitStatus(c, "the phase", (it) =>
      (it.phase ?? "").startsWith("Instance Status Extraction"),
    );
    expect(cluster.status?.targetPrimary).toBe(`${c}-1`);
  });

  it("waits while two instances report being primary", async () => {
    const other = scene.node.instances.get(`${c}-2`);
    if (other) other.override = { isPrimary: true };
    await scene.node.killPod(`${c}-3`);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(await scene.find(resources.pods, `${c}-3`)).toBeUndefined();
    if (other) other.override = {};
    await scene.waitHealthy(c, 3);
  });

  it("spares a fenced primary", async () => {
    await scene.annotate(c, { "cnpg.io/fencedInstances": JSON.stringify([`${c}-1`]) });
    const primary = scene.node.instances.get(`${c}-1`);
    if (primary) primary.override = { mightBeUnavailable: true, isPrimary: false };
    await scene.node.setReady(`${c}-1`, false);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect((await scene.cluster(c)).status?.targetPrimary).toBe(`${c}-1`);
  });

  it("heals two pods that go at once", async () => {
    await Promise.all([scene.node.killPod(`${c}-1`), scene.node.killPod(`${c}-2`)]);
    const cluster = await scene.waitStatus(c, "a new primary", (it) => it.currentPrimary === `${c}-3`);
    expect(cluster.status?.targetPrimary).toBe(`${c}-3`);
    await scene.waitHealthy(c, 3);
  });
});

describe("switchover", () => {
  it("asked for by a status patch moves the role and then the labels", async () => {
    await scene.patchStatus(c, {
      targetPrimary: `${c}-3`,
      targetPrimaryTimestamp: new Date().toISOString(),
      phase: "Switchover in progress",
      phaseReason: `Switching over to ${c}-3`,
    });
    await scene.waitStatus(c, "the new primary", (it) => it.currentPrimary === `${c}-3`);
    const began = Date.now();
    await expect.poll(roles, { timeout: 5_000, interval: 20 }).toEqual({
      [`${c}-1`]: "replica",
      [`${c}-2`]: "replica",
      [`${c}-3`]: "primary",
    });
    expect(Date.now() - began).toBeLessThan(1_000);
    await scene.waitHealthy(c, 3);
  });

  it("to an instance that does not exist is taken back", async () => {
    await scene.patchStatus(c, { targetPrimary: `${c}-9`, targetPrimaryTimestamp: new Date().toISOString() });
    await scene.waitStatus(c, "the old target", (it) => it.targetPrimary === `${c}-1`);
    await scene.waitHealthy(c, 3);
  });
});
