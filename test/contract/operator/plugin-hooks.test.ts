// What plugins see of the operator's writes and passes, and what their answers do: real plugin servers, a real API server.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Backup } from "../../../src/api/generated/backup.ts";
import { phases } from "../../../src/api/phases.ts";
import { resources } from "../../../src/kube/resources.ts";
import { createStore } from "../../../src/kube/store.ts";
import {
  buildJsonPatch,
  createPluginServer,
  type LifecycleService,
  type OperatorService,
  type PluginServer,
  type ReconcilerAnswer,
} from "../../../src/plugin/framework/index.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { openScene, type RunningOperator, type Scene, startOperator, startWorld, type World } from "./world.ts";

let world: World;
let scene: Scene;
let operator: RunningOperator;
let folder: string;
/** Backups that pods were told to take. */
let told: string[] = [];
const servers: PluginServer[] = [];

beforeAll(async () => {
  world = await startWorld();
  scene = await openScene(world);
  folder = await mkdtemp(join(tmpdir(), "plugins-"));
  const exec = {
    run: async (_target: unknown, command: readonly string[]) => {
      told.push(command.at(-1) ?? "");
      return { stdout: "", stderr: "", exitCode: 0 };
    },
  };
  operator = startOperator(world, scene.namespace, undefined, { PLUGIN_SOCKET_DIR: folder }, exec);
});

afterAll(async () => {
  await operator?.stop();
  await Promise.all(servers.map((it) => it.stop({ graceMs: 0 })));
  await scene?.stop();
  await world?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Waits also through the pauses between two looks of the operator. */
const eventually = <T>(look: () => T) => expect.poll(look, { timeout: 60_000 });

/** What a plugin answers around passes, by stage and kind; a test changes it while the plugin runs. */
interface Answers {
  [stageAndKind: string]: ReconcilerAnswer;
}

interface Behaviour {
  /** Stages and kinds of the calls so far, such as `pre Backup b`. */
  calls: string[];
  answers: Answers;
}

async function startPlugin(
  name: string,
  services: { lifecycle?: LifecycleService; operator?: OperatorService } = {},
): Promise<Behaviour> {
  const behaviour: Behaviour = { calls: [], answers: {} };
  const at = (stage: "pre" | "post") => (request: { resource: { kind?: string; metadata: { name?: string } } }) => {
    const { kind = "", metadata } = request.resource;
    behaviour.calls.push(`${stage} ${kind} ${metadata.name}`);
    return behaviour.answers[`${stage} ${kind}`];
  };
  const server = await createPluginServer({
    identity: { name, version: "1.0.0", displayName: name, license: "Apache-2.0" },
    listen: { kind: "socket", folder },
    logger: captureLogs().logger,
    services: { reconciler: { kinds: ["Cluster", "Backup"], pre: at("pre"), post: at("post") }, ...services },
  });
  servers.push(server);
  return behaviour;
}

describe("the hooks around writes", () => {
  const seen: string[] = [];
  let refuseDelete = false;

  beforeAll(async () => {
    const operations = ["create", "patch", "update", "delete", "evaluate"] as const;
    await startPlugin("writes.example.com", {
      lifecycle: {
        capabilities: [
          { group: "", kind: "Pod", operations },
          { group: "", kind: "PersistentVolumeClaim", operations: ["create", "delete"] },
          { group: "", kind: "Service", operations: ["create", "update", "patch"] },
          { group: "batch", kind: "Job", operations: ["create", "delete"] },
        ],
        hook({ operation, object }) {
          const { kind = "", metadata } = object;
          seen.push(`${operation} ${kind} ${metadata.name}`);
          if (operation === "delete" && refuseDelete) throw new Error("not before the copy is done");
          if (operation === "evaluate") return undefined;
          const annotations = { ...metadata.annotations, [`example.com/${operation}`]: "seen" };
          return buildJsonPatch(object, { ...object, metadata: { ...metadata, annotations } } as typeof object);
        },
      },
    });
    await scene.create("writes", { instances: 2, plugins: [{ name: "writes.example.com" }] });
    await scene.waitHealthy("writes", 2, 60_000);
  });

  it("of a new object change what is created", async () => {
    const created = [
      "Pod writes-1",
      "Pod writes-2",
      "PersistentVolumeClaim writes-1",
      "Service writes-rw",
      "Job writes-1-initdb",
    ];
    for (const object of created) expect(seen).toContain(`create ${object}`);
    const pod = await scene.find(resources.pods, "writes-1");
    const service = await scene.find(resources.services, "writes-rw");
    for (const object of [pod, service])
      expect(object?.metadata.annotations).toMatchObject({ "example.com/create": "seen" });
    expect(pod?.metadata.annotations?.["cnpg.io/podSpec"]).toBeDefined();
  });

  it("of a patch add to it", async () => {
    await scene.patchSpec("writes", { inheritedMetadata: { labels: { team: "b" } } });
    await eventually(async () => (await scene.find(resources.pods, "writes-1"))?.metadata.labels?.["team"]).toBe("b");
    expect(seen).toContain("patch Pod writes-1");
    const pod = await scene.find(resources.pods, "writes-1");
    expect(pod?.metadata.annotations).toMatchObject({ "example.com/patch": "seen", "example.com/create": "seen" });
  });

  it("of an update change what is written", async () => {
    const service = () => scene.find(resources.services, "writes-ro");
    await scene.patchSpec("writes", { inheritedMetadata: { labels: { team: "c" } } });
    await eventually(async () => (await service())?.metadata.labels?.["team"]).toBe("c");
    expect(seen).toContain("update Service writes-ro");
    expect((await service())?.metadata.annotations).toMatchObject({ "example.com/update": "seen" });
  });

  it("of a deletion come before it, may change the object, and may forbid it", async () => {
    const last = new Map<string, Record<string, string> | undefined>();
    const stop = new AbortController();
    const options = { logger: captureLogs().logger, clock: systemClock, namespace: scene.namespace };
    const pods = createStore(world.api, resources.pods, options);
    pods.subscribe(({ object }) => last.set(object.metadata.name ?? "", object.metadata.annotations));
    const watching = pods.run(stop.signal);
    await pods.synced();
    refuseDelete = true;
    await scene.patchSpec("writes", { instances: 1 });
    const failed = await scene.waitStatus("writes", "a plugin failure", (it) => it.phase === phases.pluginFailure);
    expect(failed.status?.phaseReason).toContain("not before the copy is done");
    expect(await scene.find(resources.pods, "writes-2")).toBeDefined();
    refuseDelete = false;
    await eventually(() => scene.find(resources.pods, "writes-2")).toBeUndefined();
    await scene.waitHealthy("writes", 1, 60_000);
    expect(seen).toContain("delete Pod writes-2");
    await eventually(() => last.get("writes-2")?.["example.com/delete"]).toBe("seen");
    expect(last.get("writes-1")?.["example.com/delete"]).toBeUndefined();
    stop.abort();
    await watching;
  });
});

describe("the hooks around passes", () => {
  it("that take over before a pass end it, without another look, until something changes", async () => {
    const plugin = await startPlugin("over.example.com");
    plugin.answers["pre Cluster"] = { behavior: "terminate" };
    await scene.create("over", { instances: 1, plugins: [{ name: "over.example.com" }] });
    await eventually(() => plugin.calls).toContain("pre Cluster over");
    await scene.waitStatus("over", "the plugin's status", (it) => it.pluginStatus?.length === 1);
    expect(await scene.find(resources.jobs, "over-1-initdb")).toBeUndefined();
    expect(plugin.calls).not.toContain("post Cluster over");
    delete plugin.answers["pre Cluster"];
    await scene.annotate("over", { "example.com/changed": "1" });
    await scene.waitHealthy("over", 1, 60_000);
  });

  it("that take over after a pass pass over those behind them, and the status is asked for all the same", async () => {
    const first = await startPlugin("a-last.example.com");
    let asked = 0;
    const second = await startPlugin("b-last.example.com", {
      operator: { setStatusInCluster: () => ({ asked: ++asked > 0 }) },
    });
    first.answers["post Cluster"] = { behavior: "terminate" };
    await scene.create("last", {
      instances: 1,
      plugins: [{ name: "b-last.example.com" }, { name: "a-last.example.com" }],
    });
    await scene.waitStatus(
      "last",
      "a status",
      (it) => it.pluginStatus?.some(({ status }) => status === '{"asked":true}') ?? false,
    );
    await scene.waitHealthy("last", 1, 60_000);
    expect(first.calls).toContain("post Cluster last");
    expect(second.calls).not.toContain("post Cluster last");
    first.answers["post Cluster"] = { behavior: "requeue", requeueAfterSeconds: 1 };
    const before = first.calls.length;
    await scene.annotate("last", { "example.com/changed": "1" });
    await eventually(() => first.calls.slice(before).filter((it) => it === "post Cluster last").length).toBeGreaterThan(
      2,
    );
    expect(second.calls).not.toContain("post Cluster last");
    expect((await scene.cluster("last")).status?.phase).toBe(phases.healthy);
  });
});

describe("the plugins' say in a definition that came past the webhooks", () => {
  it("completes it once, and refuses it for as long as it is wrong, beside everything that keeps a primary", async () => {
    let mutations = 0;
    let validations = 0;
    const plugin = await startPlugin("strict.example.com", {
      operator: {
        // Never content: whatever it is given, it wants it otherwise.
        mutateCluster: () => [{ op: "add", path: "/spec/description", value: `the plugin's ${++mutations}` }],
        validateClusterCreate: ({ spec }) => {
          validations += 1;
          return spec.plugins?.[0]?.parameters?.["color"] === "none"
            ? [{ path: ["spec", "plugins", "0", "parameters", "color"], value: "none", message: "is no color" }]
            : [];
        },
      },
    });
    const colored = (color: string) => [{ name: "strict.example.com", parameters: { color } }];
    await scene.create("strict", { instances: 1, plugins: colored("none") });
    const refused = await scene.waitStatus("strict", "the refusal", (it) => it.phase === phases.invalid);
    expect(refused.status?.phaseReason).toContain("spec.plugins.0.parameters.color: is no color");
    await eventually(async () => (await scene.events()).map((it) => it.reason)).toContain("InvalidClusterDefinition");
    expect(await scene.find(resources.jobs, "strict-1-initdb")).toBeUndefined();
    const [changed, judged] = [mutations, validations];
    await scene.annotate("strict", { "example.com/changed": "1" });
    await eventually(() => validations).toBeGreaterThan(judged);
    expect((await scene.cluster("strict")).spec.description).toBe(`the plugin's ${changed}`);
    await scene.patchSpec("strict", { plugins: colored("red") });
    await scene.waitHealthy("strict", 1, 60_000);
    const [settled, accepted, passes] = [mutations, validations, plugin.calls.length];
    await scene.annotate("strict", { "example.com/changed": "2" });
    await eventually(() => plugin.calls.length).toBeGreaterThan(passes);
    expect([mutations, validations]).toEqual([settled, accepted]);
    expect((await scene.cluster("strict")).spec.description).toBe(`the plugin's ${settled}`);
  });
});

describe("the hooks around a Backup", () => {
  const name = "backups.example.com";
  let plugin: Behaviour;
  const create = (backup: string) =>
    world.api.create(resources.backups, {
      apiVersion: "postgresql.cnpg.io/v1",
      kind: "Backup",
      metadata: { namespace: scene.namespace, name: backup },
      spec: { cluster: { name: "kept" }, method: "plugin", pluginConfiguration: { name } },
    } as Backup);
  const phase = async (backup: string) => (await scene.find(resources.backups, backup))?.status?.phase;
  const end = (backup: string) =>
    world.api.patch(
      resources.backups,
      { namespace: scene.namespace, name: backup },
      { type: "merge", body: { status: { phase: "completed" } } },
      { subresource: "status" },
    );

  beforeAll(async () => {
    plugin = await startPlugin(name);
    await scene.create("kept", { instances: 1, plugins: [{ name }] });
    await scene.waitHealthy("kept", 1, 60_000);
  });

  beforeEach(() => {
    told = [];
    plugin.calls.length = 0;
    plugin.answers = {};
  });

  it("come before its start and after it", async () => {
    await create("one");
    await eventually(() => plugin.calls).toContain("post Backup one");
    expect(plugin.calls.filter((it) => it.endsWith("Backup one")).slice(0, 1)).toEqual(["pre Backup one"]);
    expect(told).toEqual(["one"]);
    expect(await phase("one")).toBe("started");
    await end("one");
  });

  it("put it off", async () => {
    plugin.answers["pre Backup"] = { behavior: "requeue", requeueAfterSeconds: 1 };
    await create("two");
    await eventually(() => plugin.calls.filter((it) => it === "pre Backup two").length).toBeGreaterThan(1);
    expect(told).toEqual([]);
    expect(await phase("two")).toBeUndefined();
    plugin.answers = {};
    await eventually(() => phase("two")).toBe("started");
    await end("two");
  });

  it("take it over: the operator starts nothing, and the next one waits for its end", async () => {
    plugin.answers["pre Backup"] = { behavior: "terminate" };
    await create("a-three");
    await eventually(() => plugin.calls).toContain("pre Backup a-three");
    await create("b-four");
    await eventually(() => phase("b-four")).toBe("pending");
    expect(told).toEqual([]);
    plugin.answers = {};
    await end("a-three");
    await eventually(() => phase("b-four")).toBe("started");
    expect(told).toEqual(["b-four"]);
    await end("b-four");
  });
});
