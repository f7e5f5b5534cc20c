import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import { resources } from "../../../src/kube/resources.ts";
import { closeStage, endedPasses, openStage, type RunningOperator, type Scene, type World } from "./world.ts";

let world: World;
let scene: Scene;
let operator: RunningOperator;
/** Name of the cluster of the test, healthy with three instances. */
let c: string;

beforeAll(async () => {
  ({ world, scene, operator } = await openStage());
});

beforeEach(async () => {
  c = await scene.createHealthy("f");
});

afterAll(() => closeStage({ world, scene, operator }));

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
    await scene.node.killPod(`${c}-1`);
    await scene.waitStatus(c, "a pending primary", (it) => it.targetPrimary === "pending");
    if (second) second.override = {};
    await scene.waitStatus(
      c,
      "a new primary",
      (it) => it.currentPrimary === it.targetPrimary && it.currentPrimary !== `${c}-1`,
    );
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
    await expect.poll(reasons, { timeout: 20_000 }).toContain("PrimaryStatusCheckFailed");
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
    const held = () => endedPasses(operator, c).filter((it) => it.includes("both report being primary"));
    await expect.poll(() => held().length, { timeout: 30_000 }).toBeGreaterThan(0);
    expect(await scene.find(resources.pods, `${c}-3`)).toBeUndefined();
    if (other) other.override = {};
    await scene.waitHealthy(c, 3);
  });

  it("spares a fenced primary", async () => {
    await scene.annotate(c, { "cnpg.io/fencedInstances": JSON.stringify([`${c}-1`]) });
    const primary = scene.node.instances.get(`${c}-1`);
    if (primary) primary.override = { mightBeUnavailable: true, isPrimary: false };
    await scene.node.setReady(`${c}-1`, false);
    await scene.waitStatus(c, "the unready primary", (it) => it.readyInstances === 2);
    const passes = endedPasses(operator, c).length;
    await scene.annotate(c, { "cnpg.io/reloadedAt": "now" });
    await expect.poll(() => endedPasses(operator, c).length, { timeout: 20_000 }).toBeGreaterThan(passes + 1);
    expect((await scene.cluster(c)).status?.targetPrimary).toBe(`${c}-1`);
    expect(await reasons()).not.toContain("FailingOver");
  });

  it("waits for its delay, which begins with the failure and is forgotten when the primary comes back", async () => {
    await scene.patchSpec(c, { failoverDelay: 3_600 });
    await scene.node.setReady(`${c}-1`, false);
    const primary = scene.node.instances.get(`${c}-1`);
    const healthy = primary?.status ?? null;
    if (primary) primary.status = null;
    const failing = await scene.waitStatus(c, "the start of the failure", (it) => isSince(it) !== undefined);
    expect(failing.status?.targetPrimary).toBe(`${c}-1`);
    if (primary) primary.status = healthy;
    await scene.node.setReady(`${c}-1`, true);
    const back = await scene.waitHealthy(c, 3);
    expect(back.status).toMatchObject({ currentPrimary: `${c}-1`, timelineID: 1 });
    await scene.waitStatus(c, "no failure", (it) => isSince(it) === undefined);
    expect(await reasons()).not.toContain("FailingOver");
    await scene.patchSpec(c, { failoverDelay: 2 });
    await losePrimary();
    const again = await scene.waitStatus(c, "the start of the failure", (it) => isSince(it) !== undefined);
    const after = await scene.waitStatus(c, "a new primary", (it) => it.currentPrimary !== `${c}-1`);
    const waited = Date.parse(after.status?.targetPrimaryTimestamp ?? "") - Date.parse(isSince(again.status) ?? "");
    expect(waited).toBeGreaterThanOrEqual(2_000);
    await releasePrimary();
    await scene.waitHealthy(c, 3);
  });

  const isSince = (status: Cluster["status"]) => status?.currentPrimaryFailingSinceTimestamp;

  /** The primary's pod goes, and its successor of the same name cannot start. */
  async function losePrimary(): Promise<void> {
    scene.node.holdPods.add(`${c}-1`);
    await scene.node.killPod(`${c}-1`);
  }

  async function releasePrimary(): Promise<void> {
    scene.node.holdPods.delete(`${c}-1`);
    await expect.poll(() => scene.find(resources.pods, `${c}-1`), { timeout: 20_000 }).toBeDefined();
    const body = { metadata: { annotations: { "example.org/looked-at": c } } };
    const key = { namespace: scene.namespace, name: `${c}-1` };
    await world.api.patch(resources.pods, key, { type: "merge", body });
  }

  it("is not held up by a replica that takes the question and never answers", async () => {
    const third = scene.node.instances.get(`${c}-3`);
    if (third) third.hangs = true;
    await scene.node.killPod(`${c}-1`);
    await scene.waitStatus(c, "the successor", (it) => it.currentPrimary === `${c}-2`);
    if (third) third.hangs = false;
    await scene.waitHealthy(c, 3);
  });

  it("takes over when a primary that was to restart where it is cannot start any more", async () => {
    scene.node.holdPods.add(`${c}-1`);
    await scene.patchSpec(c, { imageName: "example.org/postgresql:17.3" });
    const phase = "Primary instance is being restarted without a switchover";
    await scene.waitStatus(c, "the restart", (it) => it.phase === phase && it.readyInstances === 2);
    await expect.poll(() => scene.find(resources.pods, `${c}-1`), { timeout: 20_000 }).toBeDefined();
    expect((await scene.cluster(c)).status?.targetPrimary).toBe(`${c}-1`);
    const image = "example.org/postgresql:17.3";
    const waiting = { reason: "ErrImagePull", message: "not found" };
    const containerStatuses = [
      { name: "postgres", image, imageID: "", ready: false, restartCount: 0, state: { waiting } },
    ];
    const key = { namespace: scene.namespace, name: `${c}-1` };
    const patch = { type: "merge" as const, body: { status: { containerStatuses } } };
    await world.api.patch(resources.pods, key, patch, { subresource: "status" });
    await scene.waitStatus(c, "a new primary", (it) => ![undefined, "", `${c}-1`].includes(it.currentPrimary));
    await releasePrimary();
    await scene.waitHealthy(c, 3);
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
    await expect.poll(roles, { timeout: 20_000, interval: 20 }).toEqual({
      [`${c}-1`]: "replica",
      [`${c}-2`]: "replica",
      [`${c}-3`]: "primary",
    });
    await scene.waitHealthy(c, 3);
  });

  it("to an instance that does not exist is taken back", async () => {
    await scene.patchStatus(c, { targetPrimary: `${c}-9`, targetPrimaryTimestamp: new Date().toISOString() });
    await scene.waitStatus(c, "the old target", (it) => it.targetPrimary === `${c}-1`);
    await scene.waitHealthy(c, 3);
  });
});

describe("a node that is drained", () => {
  const cordon = (name: string, unschedulable: boolean) =>
    world.api.patch(resources.nodes, { name }, { type: "merge", body: { spec: { unschedulable } } });

  it("hands its primary over to a streaming replica on another node, or keeps it when there is none", async () => {
    const name = `${c}d`;
    for (const node of ["left", "right"]) {
      await world.api.create(resources.nodes, { apiVersion: "v1", kind: "Node", metadata: { name: node } });
    }
    for (const serial of [1, 2, 3]) scene.node.nodeOf.set(`${name}-${serial}`, "left");
    await scene.create(name);
    await scene.waitHealthy(name, 3);
    const passes = endedPasses(operator, name).length;
    await cordon("left", true);
    // With nobody elsewhere there is nobody to hand over to: those beside the primary have to move first.
    await expect.poll(() => endedPasses(operator, name).length, { timeout: 20_000 }).toBeGreaterThan(passes);
    expect((await scene.cluster(name)).status?.targetPrimary).toBe(`${name}-1`);
    const evict = async (pod: string) => {
      scene.node.nodeOf.set(pod, "right");
      await scene.node.killPod(pod);
    };
    await evict(`${name}-2`);
    await expect
      .poll(async () => (await scene.find(resources.pods, `${name}-2`))?.spec?.nodeName, { timeout: 20_000 })
      .toBe("right");
    await scene.waitHealthy(name, 3);
    await evict(`${name}-3`);
    const moved = await scene.waitStatus(name, "a primary elsewhere", (it) => it.currentPrimary !== `${name}-1`);
    expect(["2", "3"]).toContain(moved.status?.currentPrimary?.slice(-1));
    await scene.waitHealthy(name, 3);
    const events = (await scene.events()).filter((it) => it.involvedObject.name === name);
    expect(events.find((it) => it.reason === "SwitchingOver")?.message).toContain("unschedulable node left");
    expect(events.map((it) => it.reason)).not.toContain("FailingOver");
    await cordon("left", false);
  });
});
