import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { phases } from "../../../src/api/phases.ts";
import { resources } from "../../../src/kube/resources.ts";
import {
  buildJsonPatch,
  createPluginServer,
  type PluginServer,
  type ReconcilerAnswer,
  withSidecar,
} from "../../../src/plugin/framework/index.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { openScene, type RunningOperator, type Scene, startOperator, startWorld, type World } from "./world.ts";

let world: World;
let scene: Scene;
let operator: RunningOperator;
let folder: string;

beforeAll(async () => {
  world = await startWorld();
  scene = await openScene(world);
  folder = await mkdtemp(join(tmpdir(), "plugins-"));
  operator = startOperator(world, scene.namespace, undefined, { PLUGIN_SOCKET_DIR: folder });
});

afterAll(async () => {
  await operator?.stop();
  await scene?.stop();
  await world?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** What one plugin does; a test changes it while the plugin runs. */
interface Behaviour {
  image: string;
  pre?: ReconcilerAnswer | Promise<ReconcilerAnswer>;
  /** The hook of a pod fails with this text. */
  hookFailure?: string;
  status?: object;
  left: string[];
}

async function startPlugin(name: string, behaviour: Behaviour): Promise<PluginServer> {
  return createPluginServer({
    identity: { name, version: "1.2.3", displayName: name, license: "Apache-2.0" },
    listen: { kind: "socket", folder },
    logger: captureLogs().logger,
    services: {
      operator: {
        setStatusInCluster: () => behaviour.status,
        deregister: (cluster) => void behaviour.left.push(cluster.metadata.name ?? ""),
      },
      reconciler: { kinds: ["Cluster"], pre: () => behaviour.pre, post: () => undefined },
      lifecycle: {
        capabilities: [{ group: "", kind: "Pod", operations: ["create", "patch", "evaluate"] }],
        hook({ object }) {
          if (behaviour.hookFailure) throw new Error(behaviour.hookFailure);
          const pod = object as unknown as { spec: Parameters<typeof withSidecar>[0] };
          const spec = withSidecar(pod.spec, { name: "helper", image: behaviour.image });
          return buildJsonPatch(object, { ...object, spec } as typeof object);
        },
      },
    },
  });
}

const use = (name: string) => ({ instances: 1, plugins: [{ name }] });
const sidecarImage = async (pod: string) => {
  const found = await scene.find(resources.pods, pod);
  return found?.spec?.initContainers?.find((it) => it.name === "helper")?.image;
};

describe("a cluster that enables a plugin", () => {
  it("waits for one that is not there, says so, and goes on when it comes", async () => {
    await scene.create("late", use("late.example.com"));
    const waiting = await scene.waitStatus("late", "an unknown plugin", (it) => it.phase === phases.unknownPlugin);
    expect(waiting.status?.phaseReason).toContain("Unknown plugin: 'late.example.com'");
    expect(await scene.find(resources.jobs, "late-1-initdb")).toBeUndefined();
    const plugin = await startPlugin("late.example.com", { image: "helper:1", left: [] });
    const healthy = await scene.waitHealthy("late", 1, 60_000);
    expect(healthy.status?.pluginStatus).toEqual([
      {
        name: "late.example.com",
        version: "1.2.3",
        capabilities: ["TYPE_OPERATOR_SERVICE", "TYPE_RECONCILER_HOOKS", "TYPE_LIFECYCLE_SERVICE"],
        operatorCapabilities: ["TYPE_SET_STATUS_IN_CLUSTER", "TYPE_DEREGISTER"],
      },
    ]);
    await plugin.stop({ graceMs: 0 });
  });

  it("gets the plugin's sidecar in its pods, rolls them when it changes and only then", async () => {
    const behaviour: Behaviour = { image: "helper:1", left: [] };
    const plugin = await startPlugin("side.example.com", behaviour);
    await scene.create("side", use("side.example.com"));
    await scene.waitHealthy("side", 1);
    expect(await sidecarImage("side-1")).toBe("helper:1");
    const before = (await scene.find(resources.pods, "side-1"))?.metadata.uid;
    // A pass over it that finds something to write, and nothing to roll.
    await scene.annotate("side", { "cnpg.io/touched": "1" });
    await scene.patchSpec("side", { inheritedMetadata: { labels: { team: "a" } } });
    await expect
      .poll(async () => (await scene.find(resources.pods, "side-1"))?.metadata.labels?.["team"], { timeout: 20_000 })
      .toBe("a");
    expect((await scene.find(resources.pods, "side-1"))?.metadata.uid).toBe(before);
    behaviour.image = "helper:2";
    await scene.annotate("side", { "cnpg.io/touched": "2" });
    await expect.poll(() => sidecarImage("side-1"), { timeout: 30_000 }).toBe("helper:2");
    await scene.waitHealthy("side", 1);
    await plugin.stop({ graceMs: 0 });
  });

  it("makes nothing while the hook before a pass asks to wait", async () => {
    const behaviour: Behaviour = {
      image: "helper:1",
      pre: { behavior: "requeue", requeueAfterSeconds: 1 },
      left: [],
    };
    const plugin = await startPlugin("wait.example.com", behaviour);
    await scene.create("wait", use("wait.example.com"));
    await scene.waitStatus("wait", "the plugin's status", (it) => it.pluginStatus?.length === 1);
    expect(await scene.find(resources.jobs, "wait-1-initdb")).toBeUndefined();
    delete behaviour.pre;
    await scene.waitHealthy("wait", 1);
    await plugin.stop({ graceMs: 0 });
  });

  it("reports a plugin whose hook fails, writes no pod without it, and recovers; others are unaffected", async () => {
    const behaviour: Behaviour = { image: "helper:1", hookFailure: "no sidecar today", left: [] };
    const plugin = await startPlugin("fail.example.com", behaviour);
    await scene.create("fail", use("fail.example.com"));
    const failed = await scene.waitStatus("fail", "a plugin failure", (it) => it.phase === phases.pluginFailure);
    expect(failed.status?.phaseReason).toContain("no sidecar today");
    expect(await scene.find(resources.pods, "fail-1")).toBeUndefined();
    await scene.create("bystander", { instances: 1 });
    await scene.waitHealthy("bystander", 1);
    delete behaviour.hookFailure;
    await scene.waitHealthy("fail", 1, 60_000);
    expect(await sidecarImage("fail-1")).toBe("helper:1");
    await plugin.stop({ graceMs: 0 });
  });

  it("shows the status that the plugin reports, tells the plugin when it leaves, and forgets it", async () => {
    const behaviour: Behaviour = { image: "helper:1", status: { mood: "good" }, left: [] };
    const plugin = await startPlugin("mood.example.com", behaviour);
    await scene.create("mood", use("mood.example.com"));
    await scene.waitStatus("mood", "a status", (it) => it.pluginStatus?.[0]?.status === '{"mood":"good"}');
    await scene.patchSpec("mood", { plugins: [] });
    await scene.waitStatus("mood", "no plugin", (it) => it.pluginStatus === undefined);
    expect(behaviour.left).toEqual(["mood"]);
    await expect.poll(() => sidecarImage("mood-1"), { timeout: 30_000 }).toBeUndefined();
    await plugin.stop({ graceMs: 0 });
  });

  it("is not held up for ever by a plugin that hangs", async () => {
    const behaviour: Behaviour = { image: "helper:1", left: [] };
    const plugin = await startPlugin("hang.example.com", behaviour);
    await scene.create("hang", { instances: 2, plugins: [{ name: "hang.example.com" }] });
    await scene.waitHealthy("hang", 2);
    behaviour.pre = new Promise(() => undefined);
    await scene.node.killPod("hang-1");
    await scene.waitStatus("hang", "a new primary", (it) => it.currentPrimary === "hang-2", 60_000);
    await scene.waitStatus("hang", "a plugin failure", (it) => it.phase === phases.pluginFailure, 60_000);
    await plugin.stop({ graceMs: 0 });
  });

  it("still fails over while the plugin is away", async () => {
    const plugin = await startPlugin("away.example.com", { image: "helper:1", left: [] });
    await scene.create("away", { instances: 3, plugins: [{ name: "away.example.com" }] });
    await scene.waitHealthy("away", 3);
    await plugin.stop({ graceMs: 0 });
    await scene.node.killPod("away-1");
    const after = await scene.waitStatus(
      "away",
      "a new primary",
      (it) => it.currentPrimary === it.targetPrimary && it.currentPrimary !== "away-1",
    );
    const successor = after.status?.currentPrimary ?? "";
    await expect
      .poll(async () => (await scene.find(resources.pods, successor))?.metadata.labels?.["cnpg.io/instanceRole"], {
        timeout: 20_000,
      })
      .toBe("primary");
  });
});
