import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import { resources } from "../../../src/kube/resources.ts";
import { createStore } from "../../../src/kube/store.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { captureLogs } from "../../support/log-capture.ts";
import {
  closeStage,
  endedPasses,
  openScene,
  openStage,
  type RunningOperator,
  type Scene,
  startOperator,
  type World,
} from "./world.ts";

let world: World;
let scene: Scene;
let operator: RunningOperator;

beforeAll(async () => {
  ({ world, scene, operator } = await openStage());
});

afterAll(() => closeStage({ world, scene, operator }));

async function reasonsOf(cluster: string): Promise<string[]> {
  const events = await scene.events();
  return events.filter((it) => it.involvedObject.name === cluster).map((it) => it.reason ?? "");
}

/** Names of a cluster's pods as they go, in order. */
async function watchRemovals(cluster: string): Promise<{ order: string[]; stop(): Promise<void> }> {
  const ended = new AbortController();
  const options = { logger: captureLogs().logger, clock: systemClock, namespace: scene.namespace };
  const pods = createStore(world.api, resources.pods, { ...options, labelSelector: `cnpg.io/cluster=${cluster}` });
  const running = pods.run(ended.signal);
  await pods.synced();
  const order: string[] = [];
  pods.subscribe((event) => event.type === "deleted" && order.push(event.object.metadata.name ?? ""));
  return {
    order,
    async stop() {
      ended.abort();
      await running;
    },
  };
}

describe("scaling and healing", () => {
  it("adds replicas, and removes the highest serial first, with volumes", async () => {
    await scene.create("s", { instances: 1 });
    await scene.waitHealthy("s", 1);
    await scene.patchSpec("s", { instances: 3 });
    await scene.waitHealthy("s", 3);
    await scene.patchSpec("s", { instances: 2 });
    await scene.waitHealthy("s", 2);
    expect(await scene.find(resources.pods, "s-3")).toBeUndefined();
    await expect.poll(() => scene.find(resources.persistentVolumeClaims, "s-3"), { timeout: 20_000 }).toBeUndefined();
    expect(await reasonsOf("s")).toContain("ScaleDown");
  });

  it("never removes the primary", async () => {
    await scene.create("p", { instances: 2 });
    await scene.waitHealthy("p", 2);
    await scene.patchStatus("p", { targetPrimary: "p-2", targetPrimaryTimestamp: new Date().toISOString() });
    await scene.waitStatus("p", "the new primary", (it) => it.currentPrimary === "p-2");
    await scene.waitHealthy("p", 2);
    await scene.patchSpec("p", { instances: 1 });
    await scene.waitHealthy("p", 1);
    expect(await scene.find(resources.pods, "p-2")).toBeDefined();
    expect(await scene.find(resources.pods, "p-1")).toBeUndefined();
  });

  it("brings the pod of a lost replica back on the volume that it had", async () => {
    await scene.create("v");
    await scene.waitHealthy("v", 3);
    const uid = async (type: typeof resources.pods | typeof resources.persistentVolumeClaims) =>
      (await scene.find(type as typeof resources.pods, "v-2"))?.metadata.uid;
    const [pod, volume] = [await uid(resources.pods), await uid(resources.persistentVolumeClaims)];
    await scene.node.killPod("v-2");
    await expect
      .poll(async () => [undefined, pod].includes(await uid(resources.pods)), { timeout: 20_000 })
      .toBe(false);
    expect(await uid(resources.persistentVolumeClaims)).toBe(volume);
    await scene.waitHealthy("v", 3);
  });

  it("clones a replica anew when its pod and volume are gone", async () => {
    const before = await scene.find(resources.persistentVolumeClaims, "v-2");
    await world.api.delete(resources.persistentVolumeClaims, { namespace: scene.namespace, name: "v-2" });
    await scene.node.killPod("v-2");
    await expect
      .poll(async () => (await scene.find(resources.persistentVolumeClaims, "v-2"))?.metadata.uid, { timeout: 20_000 })
      .not.toBe(before?.metadata.uid);
    await scene.waitHealthy("v", 3);
  });

  it("makes the instance anew that the user has given up", async () => {
    const pod = await scene.find(resources.pods, "v-3");
    const body = { metadata: { annotations: { "alpha.cnpg.io/unrecoverable": "true" } } };
    await world.api.patch(resources.pods, { namespace: scene.namespace, name: "v-3" }, { type: "merge", body });
    await expect
      .poll(async () => (await scene.find(resources.pods, "v-3"))?.metadata.uid, { timeout: 20_000 })
      .not.toBe(pod?.metadata.uid);
    await scene.waitHealthy("v", 3);
  });

  it("leaves a cluster alone whose reconciliation is switched off, and takes it up again", async () => {
    await scene.annotate("v", { "cnpg.io/reconciliationLoop": "disabled" });
    await scene.patchSpec("v", { instances: 4 });
    const isLeft = () => endedPasses(operator, "v").at(-1) === "reconciliation is disabled by annotation";
    await expect.poll(isLeft, { timeout: 20_000 }).toBe(true);
    expect(await scene.find(resources.persistentVolumeClaims, "v-4")).toBeUndefined();
    await scene.patchSpec("v", { instances: 3 });
    await scene.annotate("v", { "cnpg.io/reconciliationLoop": null });
    await scene.waitHealthy("v", 3);
  });

  it("puts nothing to sleep that is not healthy", async () => {
    const asleep = (it: NonNullable<Cluster["status"]>) =>
      (it.conditions ?? []).find((c) => c.type === "cnpg.io/hibernation")?.reason;
    const third = await scene.find(resources.pods, "v-3");
    scene.node.holdPods.add("v-3");
    await scene.node.killPod("v-3");
    await scene.waitStatus("v", "the loss", (it) => it.phase !== "Cluster in healthy state");
    await scene.annotate("v", { "cnpg.io/hibernation": "on" });
    await scene.waitStatus("v", "the wait", (it) => asleep(it) === "WaitingForHealthy");
    expect(await scene.find(resources.pods, "v-1")).toBeDefined();
    await scene.annotate("v", { "cnpg.io/hibernation": null });
    await scene.waitStatus("v", "no condition", (it) => asleep(it) === undefined);
    scene.node.holdPods.delete("v-3");
    const lookedAt = { metadata: { annotations: { "example.org/released": "yes" } } };
    const key = { namespace: scene.namespace, name: "v-3" };
    await expect
      .poll(async () => (await scene.find(resources.pods, "v-3"))?.metadata.uid ?? third?.metadata.uid, {
        timeout: 20_000,
      })
      .not.toBe(third?.metadata.uid);
    await world.api.patch(resources.pods, key, { type: "merge", body: lookedAt });
    await scene.waitHealthy("v", 3);
  });

  it("puts the cluster to sleep and wakes it with the same primary", async () => {
    const gone = await watchRemovals("v");
    await scene.annotate("v", { "cnpg.io/hibernation": "on" });
    await scene.waitStatus("v", "sleep", (it) =>
      (it.conditions ?? []).some((c) => c.type === "cnpg.io/hibernation" && c.status === "True"),
    );
    await expect.poll(() => gone.order.length, { timeout: 20_000 }).toBe(3);
    await gone.stop();
    expect(gone.order[0]).toBe("v-1");
    expect([...gone.order].sort()).toEqual(["v-1", "v-2", "v-3"]);
    const labelSelector = "cnpg.io/cluster=v";
    expect(await world.api.list(resources.pods, { namespace: scene.namespace, labelSelector })).toEqual([]);
    expect(
      await world.api.list(resources.persistentVolumeClaims, { namespace: scene.namespace, labelSelector }),
    ).toHaveLength(3);
    await scene.annotate("v", { "cnpg.io/hibernation": "off" });
    const cluster = await scene.waitHealthy("v", 3);
    expect(cluster.status?.currentPrimary).toBe("v-1");
    expect((cluster.status?.conditions ?? []).some((it) => it.type === "cnpg.io/hibernation")).toBe(false);
  });

  it("rolls pods one by one for another image, the primary last", async () => {
    const { order, stop } = await watchRemovals("v");
    await scene.patchSpec("v", { imageName: "example.org/postgresql:17.3" });
    await scene.waitStatus("v", "every pod with the image", () => order.length >= 3);
    await scene.waitHealthy("v", 3);
    await stop();
    expect(order.at(-1)).toBe("v-1");
    expect([...order].sort()).toEqual(["v-1", "v-2", "v-3"]);
    const [pod] = await world.api.list(resources.pods, {
      namespace: scene.namespace,
      labelSelector: "cnpg.io/instanceName=v-1",
    });
    expect(pod?.spec?.containers[0]?.image).toBe("example.org/postgresql:17.3");
  });

  it("brings a deleted lease and a deleted service back", async () => {
    await world.api.delete(resources.leases, { namespace: scene.namespace, name: "v" });
    await world.api.delete(resources.services, { namespace: scene.namespace, name: "v-rw" });
    await expect.poll(() => scene.find(resources.leases, "v"), { timeout: 20_000 }).toBeDefined();
    await expect.poll(() => scene.find(resources.services, "v-rw"), { timeout: 20_000 }).toBeDefined();
  });
});

describe("adoption", () => {
  it("takes volumes of the cluster's name that nobody owns, and starts from them", async () => {
    for (const serial of [1, 2]) {
      const role = serial === 2 ? "primary" : "replica";
      await world.api.create(resources.persistentVolumeClaims, {
        apiVersion: "v1",
        kind: "PersistentVolumeClaim",
        metadata: {
          namespace: scene.namespace,
          name: `o-${serial}`,
          labels: { "cnpg.io/cluster": "o", "cnpg.io/instanceRole": role, role },
          annotations: { "cnpg.io/nodeSerial": String(serial), "cnpg.io/clusterManifest": "{}" },
        },
        spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
      });
    }
    await scene.create("o", { instances: 2 });
    const cluster = await scene.waitHealthy("o", 2);
    expect(cluster.status).toMatchObject({ currentPrimary: "o-2", instanceNames: ["o-1", "o-2"] });
    const volume = await scene.find(resources.persistentVolumeClaims, "o-2");
    expect(volume?.metadata.ownerReferences?.[0]?.uid).toBe(cluster.metadata.uid);
    expect(volume?.metadata.annotations?.["cnpg.io/clusterManifest"]).toBeUndefined();
    expect(await scene.find(resources.jobs, "o-1-initdb")).toBeUndefined();
  });
});

describe("bad input", () => {
  it("with an invalid definition gets a phase, a reason and an event, and leaves others alone", async () => {
    await scene.create("bad", { storage: { size: "much" } });
    const bad = await scene.waitStatus("bad", "the phase", (it) => it.phase === "Invalid cluster definition");
    expect(bad.status?.phaseReason).toContain("spec.storage.size");
    expect(bad.status?.conditions?.find((it) => it.type === "Ready")?.status).toBe("False");
    await expect.poll(() => reasonsOf("bad"), { timeout: 20_000 }).toContain("InvalidClusterDefinition");
    await scene.create("good", { instances: 1 });
    await scene.waitHealthy("good", 1);
  });

  it("of several clusters at once is told of each, and delays nobody", async () => {
    const bad: [string, Partial<Cluster["spec"]>, string][] = [
      ["bad-image", { imageName: "example.org/postgresql:latest" }, "spec.imageName"],
      ["bad-sync", { maxSyncReplicas: 5 }, "spec.maxSyncReplicas"],
      ["bad-parameter", { postgresql: { parameters: { port: "1" } } }, "spec.postgresql.parameters.port"],
      ["bad-bootstrap", { bootstrap: { initdb: {}, recovery: {} } }, "spec.bootstrap"],
      ["bad-wal", { walStorage: { size: "little" } }, "spec.walStorage.size"],
    ];
    await Promise.all([
      ...bad.map(([name, spec]) => scene.create(name, spec)),
      scene.create("among", { instances: 1 }),
    ]);
    await scene.waitHealthy("among", 1);
    for (const [name, , field] of bad) {
      const cluster = await scene.waitStatus(name, "the phase", (it) => it.phase === "Invalid cluster definition");
      expect(cluster.status?.phaseReason, name).toContain(field);
      expect(await scene.find(resources.persistentVolumeClaims, `${name}-1`)).toBeUndefined();
    }
  });

  it("that makes a running cluster's definition wrong stops none of its instances", async () => {
    const before = await scene.find(resources.pods, "good-1");
    await scene.patchSpec("good", { storage: { size: "less" } });
    const cluster = await scene.waitStatus("good", "the phase", (it) => it.phase === "Invalid cluster definition");
    expect(cluster.status?.phaseReason).toContain("spec.storage.size");
    expect((await scene.find(resources.pods, "good-1"))?.metadata.uid).toBe(before?.metadata.uid);
    await scene.patchSpec("good", { storage: { size: "1Gi" } });
    await scene.waitHealthy("good", 1);
  });

  it("that is put right goes on", async () => {
    await scene.patchSpec("bad", { storage: { size: "1Gi" }, instances: 1 });
    await scene.waitHealthy("bad", 1);
  });

  it("with a name that is too long is refused in words", async () => {
    const name = "a".repeat(51);
    await scene.create(name, { instances: 1 });
    const cluster = await scene.waitStatus(name, "the phase", (it) => it.phase === "Invalid cluster definition");
    expect(cluster.status?.phaseReason).toContain("metadata.name");
  });

  it("with an image that cannot be pulled says so", async () => {
    scene.node.holdJobs.add("noimage-1-initdb");
    await scene.create("noimage", { instances: 1, imageName: "example.org/none:17" });
    await scene.waitStatus("noimage", "the job", (it) => it.jobCount === 1);
    await aJobPod("noimage", {
      phase: "Pending",
      containerStatuses: [
        {
          name: "initdb",
          image: "example.org/none:17",
          imageID: "",
          ready: false,
          restartCount: 0,
          state: { waiting: { reason: "ErrImagePull", message: "not found" } },
        },
      ],
    });
    const cluster = await scene.waitStatus("noimage", "the reason", (it) =>
      (it.phaseReason ?? "").includes("ErrImagePull"),
    );
    expect(cluster.status?.phase).toBe("Setting up primary");
    await expect.poll(() => reasonsOf("noimage"), { timeout: 20_000 }).toContain("InstanceCannotStart");
  });

  it("with an impossible affinity says so", async () => {
    scene.node.holdJobs.add("nowhere-1-initdb");
    await scene.create("nowhere", { instances: 1, affinity: { nodeSelector: { none: "such" } } });
    await scene.waitStatus("nowhere", "the job", (it) => it.jobCount === 1);
    const message = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.";
    await aJobPod("nowhere", {
      phase: "Pending",
      conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message }],
    });
    await scene.waitStatus("nowhere", "the reason", (it) => (it.phaseReason ?? "").includes("cannot be scheduled"));
  });

  it("whose names are taken by somebody else says which", async () => {
    await world.api.create(resources.services, {
      apiVersion: "v1",
      kind: "Service",
      metadata: { namespace: scene.namespace, name: "taken-rw" },
      spec: { ports: [{ port: 1 }] },
    });
    await scene.create("taken", { instances: 1 });
    const cluster = await scene.waitStatus(
      "taken",
      "the phase",
      (it) => it.phase === "Unable to create required cluster objects",
    );
    expect(cluster.status?.phaseReason).toContain("taken-rw");
    await world.api.delete(resources.services, { namespace: scene.namespace, name: "taken-rw" });
    await scene.waitHealthy("taken", 1);
  });
});

describe("a namespace that is being deleted", () => {
  it("is left alone: the cluster waits for its end without an error, and tells it once", async () => {
    const ending = await openScene(world);
    const watcher = startOperator(world, ending.namespace);
    const { namespace } = ending;
    await ending.create("d", { instances: 1 });
    const before = await ending.waitHealthy("d", 1);
    await world.api.delete(resources.namespaces, { name: namespace });
    await world.api.delete(resources.services, { namespace, name: "d-rw" });
    const { records } = watcher.logs;
    const attempts = () => records.filter(({ fields }) => fields["object"] === "d-rw").length;
    const told = () => records.filter(({ message }) => message.startsWith("The namespace is being deleted"));
    await expect.poll(told, { timeout: 20_000 }).toHaveLength(1);
    for (const time of ["1", "2"]) {
      const made = attempts();
      await ending.annotate("d", { "cnpg.io/reloadedAt": time });
      await expect.poll(attempts, { timeout: 20_000 }).toBeGreaterThan(made);
    }
    const { status } = await ending.cluster("d");
    expect([status?.phase, status?.phaseReason]).toEqual([before.status?.phase, before.status?.phaseReason]);
    await world.api.delete(resources.clusters, { namespace, name: "d" });
    await expect.poll(() => ending.find(resources.clusters, "d"), { timeout: 20_000 }).toBeUndefined();
    await watcher.stop();
    await ending.stop();
    expect(told()).toHaveLength(1);
    expect(records.filter(({ level }) => level === "error" || level === "warning")).toEqual([]);
    expect((await ending.events()).map((it) => it.reason)).not.toContain("ObjectRefused");
  });
});

/** The pod that a Job controller would have made, with a status of its own. */
async function aJobPod(cluster: string, status: object): Promise<void> {
  const job = await scene.find(resources.jobs, `${cluster}-1-initdb`);
  const template = job?.spec?.template;
  if (!template?.spec) throw new Error(`cluster ${cluster} has no initdb job`);
  const pod = await world.api.create(resources.pods, {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { namespace: scene.namespace, name: `${cluster}-1-initdb-x`, labels: template.metadata?.labels ?? {} },
    spec: template.spec,
  });
  const key = { namespace: scene.namespace, name: pod.metadata.name ?? "" };
  await world.api.patch(resources.pods, key, { type: "merge", body: { status } }, { subresource: "status" });
}
