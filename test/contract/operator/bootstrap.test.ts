import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import { resources } from "../../../src/kube/resources.ts";
import { createStore } from "../../../src/kube/store.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { closeStage, endedPasses, openStage, type RunningOperator, type Scene, type World } from "./world.ts";

let world: World;
let scene: Scene;
let operator: RunningOperator;

beforeAll(async () => {
  ({ world, scene, operator } = await openStage());
});

afterAll(() => closeStage({ world, scene, operator }));

describe("bootstrap", () => {
  it("brings three instances up from nothing", async () => {
    const history = await watchHistory();
    await scene.create("c", {
      inheritedMetadata: { labels: { team: "blue" }, annotations: { "example.org/cost": "42" } },
    });
    const cluster = await scene.waitHealthy("c", 3);
    await history.stop();
    told = history;
    expect(cluster.status).toMatchObject({
      currentPrimary: "c-1",
      targetPrimary: "c-1",
      instanceNames: ["c-1", "c-2", "c-3"],
    });
    const pods = await world.api.list(resources.pods, { namespace: scene.namespace });
    const roles = pods.map((it) => [it.metadata.name, it.metadata.labels?.["role"]]);
    expect(Object.fromEntries(roles)).toEqual({ "c-1": "primary", "c-2": "replica", "c-3": "replica" });
  });

  it("names the primary before the first Job, and makes the Jobs in the order of the serials", () => {
    const [initdb, ...joins] = told.jobs;
    expect(initdb?.name).toBe("c-1-initdb");
    expect(joins.map((it) => it.name).sort()).toEqual(["c-2-join", "c-3-join"]);
    const named = told.clusters.find((it) => it.status?.targetPrimary === "c-1");
    expect(versionOf(named)).toBeGreaterThan(0);
    expect(versionOf(named)).toBeLessThan(initdb?.version ?? 0);
  });

  it("marks each volume as initializing until its Job is done, then as ready", () => {
    for (const name of ["c-1", "c-2", "c-3"]) {
      expect(told.volumes.filter((it) => it.name === name).map((it) => it.state)).toEqual(["initializing", "ready"]);
    }
  });

  it("labels the Secrets with certificates and credentials as the cluster's, and gives them what they inherit", async () => {
    for (const name of ["c-ca", "c-server", "c-replication", "c-app"]) {
      const secret = await scene.find(resources.secrets, name);
      expect(secret?.metadata.labels, name).toMatchObject({ "cnpg.io/cluster": "c", team: "blue" });
      expect(secret?.metadata.annotations, name).toMatchObject({ "example.org/cost": "42" });
    }
  });

  it("writes the conditions that a pass changes all at once", () => {
    const changes = told.clusters.map((cluster, index) => {
      const before = new Map(conditionsOf(told.clusters[index - 1]));
      return conditionsOf(cluster).filter(([type, status]) => before.get(type) !== status).length;
    });
    expect(Math.max(...changes)).toBeGreaterThan(1);
    const [last] = told.clusters.slice(-1);
    expect(Object.fromEntries(conditionsOf(last))).toMatchObject({
      Ready: "True",
      Initialized: "True",
      ConsistentSystemID: "True",
    });
  });

  it("then writes nothing more, however often it looks", async () => {
    await quiet();
    const before = await versions();
    for (const mark of ["1", "2", "3"]) {
      const passes = endedPasses(operator, "c").length;
      await scene.annotate("c", { "cnpg.io/reloadedAt": mark });
      await expect.poll(() => endedPasses(operator, "c").length, { timeout: 20_000 }).toBeGreaterThan(passes);
    }
    expect(await versions()).toEqual(before);
  });
});

interface History {
  /** Each state of the cluster. */
  clusters: Cluster[];
  /** Each Job that came to be, with the version of its first state. */
  jobs: { name: string; version: number }[];
  /** Each state that a volume was marked with. */
  volumes: { name: string; state: string | undefined }[];
}

let told: History;

const versionOf = (object: Cluster | undefined) => Number(object?.metadata.resourceVersion ?? 0);
const conditionsOf = (cluster: Cluster | undefined) =>
  (cluster?.status?.conditions ?? []).map((it): [string, string] => [it.type, it.status]);

/** Remembers what becomes of the objects of the scene, as anybody who watches them sees it. */
async function watchHistory(): Promise<History & { stop(): Promise<void> }> {
  const ended = new AbortController();
  const options = { logger: captureLogs().logger, clock: systemClock, namespace: scene.namespace };
  const history: History = { clusters: [], jobs: [], volumes: [] };
  const clusters = createStore(world.api, resources.clusters, options);
  const jobs = createStore(world.api, resources.jobs, options);
  const volumes = createStore(world.api, resources.persistentVolumeClaims, options);
  const running = [clusters, jobs, volumes].map((it) => it.run(ended.signal));
  await Promise.all([clusters, jobs, volumes].map((it) => it.synced()));
  clusters.subscribe((event) => {
    if (event.type !== "deleted") history.clusters.push(event.object);
  });
  jobs.subscribe(({ type, object }) => {
    const { name = "", resourceVersion } = object.metadata;
    if (type === "added") history.jobs.push({ name, version: Number(resourceVersion) });
  });
  volumes.subscribe(({ type, object }) => {
    const { name = "", annotations } = object.metadata;
    const state = annotations?.["cnpg.io/pvcStatus"];
    const before = history.volumes.findLast((it) => it.name === name)?.state;
    if (type !== "deleted" && state !== before) history.volumes.push({ name, state });
  });
  return {
    ...history,
    async stop() {
      ended.abort();
      await Promise.all(running);
    },
  };
}

/** Resolves when what a pass wrote has led to no other pass for a while. */
async function quiet(): Promise<void> {
  for (let before = -1, now = 0; before !== now; before = now, now = endedPasses(operator, "c").length) {
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

/** Version of every child of the cluster, and the status of the cluster itself. */
async function versions(): Promise<Record<string, unknown>> {
  const types = [
    resources.pods,
    resources.persistentVolumeClaims,
    resources.services,
    resources.secrets,
    resources.serviceAccounts,
    resources.roles,
    resources.roleBindings,
    resources.podDisruptionBudgets,
    resources.leases,
    resources.jobs,
  ] as const;
  const result: Record<string, unknown> = { status: (await scene.cluster("c")).status };
  for (const type of types) {
    const objects = await world.api.list(type as typeof resources.pods, { namespace: scene.namespace });
    for (const it of objects) result[`${type.kind} ${it.metadata.name}`] = it.metadata.resourceVersion;
  }
  return result;
}
