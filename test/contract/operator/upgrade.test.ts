import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { phases } from "../../../src/api/phases.ts";
import { resources } from "../../../src/kube/resources.ts";
import { buildJsonPatch, createPluginServer, withSidecar } from "../../../src/plugin/framework/index.ts";
import { hashManagerArchive, openManagerArchive } from "../../../src/store/manager-archive.ts";
import { captureLogs } from "../../support/log-capture.ts";
import type { FakeInstance } from "./fake-instance.ts";
import { openScene, type RunningOperator, type Scene, startOperator, startWorld, type World } from "./world.ts";

const oldHash = "a".repeat(64);
const arch = process.arch === "x64" ? "amd64" : process.arch;
const folder = mkdtempSync(join(tmpdir(), "cnpg-ts-upgrade-"));
const runtimeFolder = join(folder, "runtime");
let hash: string;
let world: World;
let scene: Scene;
let operator: RunningOperator;

/** An operator whose image carries a small manager. */
function start(env: Record<string, string> = {}): void {
  operator = startOperator(world, scene.namespace, undefined, env, undefined, { runtimeFolder });
}

beforeAll(async () => {
  mkdirSync(runtimeFolder);
  writeFileSync(join(folder, "manager"), "launcher");
  chmodSync(join(folder, "manager"), 0o755);
  writeFileSync(join(runtimeFolder, "node"), Buffer.alloc(3_000_000, "node"), { mode: 0o755 });
  const release = { version: "2", arch };
  hash = await hashManagerArchive(
    await openManagerArchive({ launcher: join(folder, "manager"), runtimeFolder, release }),
  );
  writeFileSync(join(runtimeFolder, "manifest.json"), JSON.stringify({ ...release, hash, commit: "1234abc" }));
  world = await startWorld();
});

afterEach(async () => {
  await operator?.stop();
  await scene?.stop();
});

afterAll(async () => {
  await world?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const instance = (name: string): FakeInstance => {
  const found = scene.node.instances.get(name);
  if (!found) throw new Error(`${name} does not run`);
  return found;
};
const touch = (cluster: string) => scene.annotate(cluster, { "cnpg.io/touched": String(Math.random()) });
const uids = async (cluster: string) => {
  const labelSelector = `cnpg.io/cluster=${cluster},cnpg.io/podRole=instance`;
  const pods = await world.api.list(resources.pods, { namespace: scene.namespace, labelSelector });
  return Object.fromEntries(pods.map((it) => [it.metadata.name ?? "", it.metadata.uid ?? ""]));
};
const messages = async (reason: string) =>
  (await scene.events()).filter((it) => it.reason === reason).map((it) => it.message ?? "");

/** Has every instance run a manager of ours that is another one than the operator's, and take what it is sent. */
function runOldManagers(cluster: string, count: number, log: string[]): void {
  for (let serial = 1; serial <= count; serial += 1) {
    const one = instance(`${cluster}-${serial}`);
    one.override = { executableHash: oldHash, cnpgTs: {}, instanceArch: arch };
    one.update = (archive) => {
      log.push(one.name);
      one.override = { ...one.override, executableHash: createHash("sha256").update(archive).digest("hex") };
      return "take over";
    };
  }
}

describe("an operator with another instance manager", () => {
  const inPlace = { ENABLE_INSTANCE_MANAGER_INPLACE_UPDATES: "true" };

  it("sends it to running instances, the primary last, without touching a pod", async () => {
    scene = await openScene(world);
    start(inPlace);
    await scene.create("m", { instances: 3 });
    const settled = await scene.waitHealthy("m", 3);
    expect(settled.status).toMatchObject({
      onlineUpdateEnabled: true,
      cloudNativePGOperatorHash: hash,
      cloudNativePGCommitHash: "1234abc",
      availableArchitectures: [{ goArch: arch, hash }],
    });
    const before = await uids("m");
    const order: string[] = [];
    runOldManagers("m", 3, order);
    const taken = instance("m-3").update;
    let refusals = 0;
    // As an instance that has not heard of this operator's key yet.
    instance("m-3").update = (archive) => {
      refusals += 1;
      if (refusals > 2) return taken?.(archive) ?? "take over";
      return { status: 503, body: "operator certificate not recognized" };
    };
    await touch("m");
    await scene.waitStatus("m", "the phase", (it) => it.phase === phases.onlineUpgrading);
    await expect.poll(() => order, { timeout: 30_000 }).toEqual(["m-3", "m-2", "m-1"]);
    await scene.waitHealthy("m", 3);
    await expect
      .poll(() => messages("InstanceManagerUpgraded"), { timeout: 15_000 })
      .toEqual(
        expect.arrayContaining(
          ["m-3", "m-2", "m-1"].map(
            (name) => `Instance manager has been upgraded on ${name} (oldHash: aaaaaa — newHash: ${hash.slice(0, 6)})`,
          ),
        ),
      );
    expect(await messages("InstanceManagerUpgradeFailed")).toEqual([]);
    expect(refusals).toBe(3);
    expect(await uids("m")).toEqual(before);
  });

  it("tells a refusal, goes on with the rest of its work, and tries again", async () => {
    scene = await openScene(world);
    start(inPlace);
    await scene.create("f", { instances: 1 });
    await scene.waitHealthy("f", 1);
    const order: string[] = [];
    runOldManagers("f", 1, order);
    instance("f-1").update = () => ({ status: 500, body: "the manager has another hash" });
    await touch("f");
    await expect
      .poll(() => messages("InstanceManagerUpgradeFailed"), { timeout: 30_000 })
      .toEqual([
        `Error while upgrading instance manager on f-1 (hash: ${hash.slice(0, 6)}): it answered 500: the manager has another hash`,
      ]);
    await scene.patchSpec("f", { instances: 2 });
    await scene.waitHealthy("f", 2);
    runOldManagers("f", 2, order);
    await expect.poll(() => order, { timeout: 40_000 }).toEqual(["f-2", "f-1"]);
    await scene.waitHealthy("f", 2);
  });

  it("says that it has none for the machine of an instance", async () => {
    scene = await openScene(world);
    start(inPlace);
    await scene.create("x", { instances: 1 });
    await scene.waitHealthy("x", 1);
    instance("x-1").override = { executableHash: oldHash, cnpgTs: {}, instanceArch: "s390x" };
    await touch("x");
    const cluster = await scene.waitStatus("x", "the phase", (it) => it.phase === phases.architectureMissing);
    expect(cluster.status?.phaseReason).toBe(
      "encountered an error while upgrading the instance manager: invalid architecture: s390x",
    );
    instance("x-1").override = { executableHash: hash, cnpgTs: {}, instanceArch: arch };
    await touch("x");
    await scene.waitHealthy("x", 1);
  });

  it("replaces the pods instead where in-place updates are off", async () => {
    scene = await openScene(world);
    start();
    await scene.create("o", { instances: 2 });
    await scene.waitHealthy("o", 2);
    const before = await uids("o");
    await operator.stop();
    start({ OPERATOR_IMAGE_NAME: "example.org/operator:2" });
    await expect
      .poll(async () => Object.entries(await uids("o")).filter(([name, uid]) => before[name] !== uid).length, {
        timeout: 30_000,
      })
      .toBe(2);
    await scene.waitHealthy("o", 2);
    const pod = await scene.find(resources.pods, "o-1");
    expect(pod?.spec?.initContainers?.[0]?.image).toBe("example.org/operator:2");
  });
});

describe("a rollout", () => {
  const image = "example.org/postgresql:17.3";
  const imageOf = async (name: string) => (await scene.find(resources.pods, name))?.spec?.containers[0]?.image;

  it("leaves the primary to the user where that is asked for, and goes on after the switchover", async () => {
    scene = await openScene(world);
    start();
    await scene.create("s", { instances: 2, primaryUpdateStrategy: "supervised" });
    await scene.waitHealthy("s", 2);
    const before = await uids("s");
    await scene.patchSpec("s", { imageName: image });
    const waiting = await scene.waitStatus("s", "the wait", (it) => it.phase === phases.waitingForUser);
    expect(waiting.status?.phaseReason).toBe("User must issue a supervised switchover");
    expect(await imageOf("s-2")).toBe(image);
    await touch("s");
    await operator.stop();
    start();
    await scene.waitStatus("s", "the same wait", (it) => it.phase === phases.waitingForUser);
    expect((await uids("s"))["s-1"]).toBe(before["s-1"]);
    await scene.patchStatus("s", { targetPrimary: "s-2", targetPrimaryTimestamp: new Date().toISOString() });
    await expect.poll(() => imageOf("s-1"), { timeout: 30_000 }).toBe(image);
    const done = await scene.waitHealthy("s", 2);
    expect(done.status?.currentPrimary).toBe("s-2");
  });

  it("hands over before it replaces the primary, by the method switchover", async () => {
    scene = await openScene(world);
    start();
    await scene.create("h", { instances: 2, primaryUpdateMethod: "switchover" });
    await scene.waitHealthy("h", 2);
    await scene.patchSpec("h", { imageName: image });
    await expect.poll(() => imageOf("h-1"), { timeout: 30_000 }).toBe(image);
    const done = await scene.waitHealthy("h", 2);
    expect(done.status?.currentPrimary).toBe("h-2");
    expect(await messages("Switchover")).toEqual(["Initiating switchover to h-2 to upgrade h-1"]);
  });

  it("has the primary restart in its pod when that is enough, and replaces replicas", async () => {
    scene = await openScene(world);
    start();
    await scene.create("r", { instances: 2 });
    await scene.waitHealthy("r", 2);
    const before = await uids("r");
    instance("r-1").override = { pendingRestart: true };
    await touch("r");
    const restarting = await scene.waitStatus("r", "the phase", (it) => it.phase === phases.inPlacePrimaryRestart);
    expect(restarting.status?.phaseReason).toBe("Postgres needs a restart to apply some configuration changes");
    instance("r-1").override = {};
    await scene.patchStatus("r", { phase: phases.healthy, phaseReason: "Primary instance restarted in-place" });
    await scene.waitHealthy("r", 2);
    instance("r-2").override = { pendingRestart: true };
    await touch("r");
    await expect.poll(async () => (await uids("r"))["r-2"] !== before["r-2"], { timeout: 15_000 }).toBe(true);
    await scene.waitHealthy("r", 2);
    expect((await uids("r"))["r-1"]).toBe(before["r-1"]);
  });

  it("hands nothing over from a primary that lacks the container which archives its WAL", async () => {
    scene = await openScene(world);
    start({ PLUGIN_SOCKET_DIR: folder });
    const name = "archiver.example.com";
    await scene.create("w", { instances: 2, primaryUpdateMethod: "switchover" });
    await scene.waitHealthy("w", 2);
    const plugin = await createPluginServer({
      identity: { name, version: "1", displayName: name, license: "Apache-2.0" },
      listen: { kind: "socket", folder },
      logger: captureLogs().logger,
      services: {
        lifecycle: {
          capabilities: [{ group: "", kind: "Pod", operations: ["create", "evaluate"] }],
          hook({ object }) {
            const pod = object as unknown as { spec: Parameters<typeof withSidecar>[0] };
            const spec = withSidecar(pod.spec, { name: "archiver", image: "example.org/archiver:1" });
            return buildJsonPatch(object, { ...object, spec } as typeof object);
          },
        },
      },
    });
    try {
      await scene.patchSpec("w", { plugins: [{ name, isWALArchiver: true }] });
      const sidecarOf = async (pod: string) =>
        (await scene.find(resources.pods, pod))?.spec?.initContainers?.some((it) => it.name === "archiver");
      for (const pod of ["w-2", "w-1"]) {
        await expect.poll(() => sidecarOf(pod), { timeout: 40_000 }).toBe(true);
      }
      const done = await scene.waitHealthy("w", 2);
      expect(done.status?.currentPrimary).toBe("w-1");
      expect(await messages("Switchover")).toEqual([]);
    } finally {
      await plugin.stop({ graceMs: 0 });
    }
  });

  it("follows the restart annotation with every pod, which then carries it", async () => {
    scene = await openScene(world);
    start();
    await scene.create("a", { instances: 2 });
    await scene.waitHealthy("a", 2);
    const before = await uids("a");
    const key = "kubectl.kubernetes.io/restartedAt";
    await scene.annotate("a", { [key]: "2026-01-02T03:04:05Z" });
    for (const name of ["a-1", "a-2"]) {
      await expect
        .poll(async () => (await scene.find(resources.pods, name))?.metadata.annotations?.[key], { timeout: 30_000 })
        .toBe("2026-01-02T03:04:05Z");
    }
    const done = await scene.waitHealthy("a", 2);
    expect(done.status?.currentPrimary).toBe("a-1");
    expect(Object.entries(await uids("a")).filter(([name, uid]) => before[name] === uid)).toEqual([]);
  });

  it("pauses between instances, also when the operator is another one by then", async () => {
    scene = await openScene(world);
    const slow = { INSTANCES_ROLLOUT_DELAY: "3600" };
    start(slow);
    await scene.create("d", { instances: 3 });
    await scene.waitHealthy("d", 3);
    const before = await uids("d");
    const replaced = async () => Object.entries(await uids("d")).filter(([name, uid]) => before[name] !== uid);
    await scene.patchSpec("d", { imageName: image });
    const delayed = await scene.waitStatus("d", "the pause", (it) => it.phase === phases.upgradeDelayed);
    expect(delayed.status?.phaseReason).toBe(
      "The cluster need to be update, but the operator is configured to delay the operation",
    );
    expect(await replaced()).toHaveLength(1);
    expect(await messages("RolloutDelayed")).toEqual([
      expect.stringMatching(/^Rollout of pod d-\d have been delayed for \d+s$/),
    ]);
    await operator.stop();
    start(slow);
    const seen = await scene.cluster("d");
    await scene.patchStatus("d", { phase: phases.healthy, phaseReason: null });
    await scene.waitStatus("d", "the same pause", (it) => it.phase === phases.upgradeDelayed);
    expect(seen.metadata.annotations?.["cnpg-ts.dev/lastRollout"]).toContain('"podUid"');
    expect(await replaced()).toHaveLength(1);
    await operator.stop();
    start();
    await expect.poll(async () => (await replaced()).length, { timeout: 30_000 }).toBe(3);
    await scene.waitHealthy("d", 3);
  });

  it("pauses between clusters, whichever comes first", async () => {
    scene = await openScene(world);
    const slow = { CLUSTERS_ROLLOUT_DELAY: "3600" };
    start(slow);
    const clusters = ["g", "h"];
    for (const name of clusters) await scene.create(name, { instances: 1 });
    for (const name of clusters) await scene.waitHealthy(name, 1);
    const before = { ...(await uids("g")), ...(await uids("h")) };
    const replaced = async () => {
      const now = { ...(await uids("g")), ...(await uids("h")) };
      return Object.keys(now).filter((name) => now[name] !== before[name]);
    };
    for (const name of clusters) await scene.patchSpec(name, { imageName: image });
    await expect.poll(async () => (await replaced()).length, { timeout: 30_000 }).toBe(1);
    const [first = ""] = await replaced();
    const other = first.startsWith("g") ? "h" : "g";
    await scene.waitStatus(other, "the pause", (it) => it.phase === phases.upgradeDelayed);
    await scene.waitHealthy(first.slice(0, 1), 1);
    expect(await replaced()).toEqual([first]);
    await operator.stop();
    start();
    await expect.poll(async () => (await replaced()).length, { timeout: 30_000 }).toBe(2);
    for (const name of clusters) await scene.waitHealthy(name, 1);
  });
});
