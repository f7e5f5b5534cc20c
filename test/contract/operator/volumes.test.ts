import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PersistentVolumeClaim } from "../../../src/api/generated/kubernetes.ts";
import { resources } from "../../../src/kube/resources.ts";
import type { KubeObject } from "../../../src/ports/kube-api.ts";
import { primaryStatus } from "../../unit/plan/cluster/fixtures.ts";
import { closeStage, endedPasses, openStage, type RunningOperator, type Scene, type World } from "./world.ts";

const soon = { timeout: 20_000, interval: 50 };

let world: World;
let scene: Scene;
let operator: RunningOperator;

beforeAll(async () => {
  ({ world, scene, operator } = await openStage());
  await world.api.create(resources.storageClasses, {
    apiVersion: "storage.k8s.io/v1",
    kind: "StorageClass",
    metadata: { name: "grows" },
    provisioner: "example.org/none",
    allowVolumeExpansion: true,
  } as KubeObject);
});

afterAll(() => closeStage({ world, scene, operator }));

function volume(name: string): Promise<PersistentVolumeClaim | undefined> {
  return scene.find(resources.persistentVolumeClaims, name);
}

const sizeOf = async (name: string) => (await volume(name))?.spec?.resources?.requests?.["storage"];

async function volumeNames(cluster: string): Promise<string[]> {
  const labelSelector = `cnpg.io/cluster=${cluster}`;
  const found = await world.api.list(resources.persistentVolumeClaims, { namespace: scene.namespace, labelSelector });
  return found.map((it) => it.metadata.name ?? "").sort();
}

/** Wakes the operator and waits until it has looked twice more. */
async function lookTwice(cluster: string): Promise<void> {
  const before = endedPasses(operator, cluster).length;
  for (let count = 1; count <= 2; count += 1) {
    await scene.annotate(cluster, { "cnpg.io/reloadedAt": `${before}.${count}` });
    await expect.poll(() => endedPasses(operator, cluster).length, soon).toBeGreaterThanOrEqual(before + count);
  }
}

/** Lets a pod start that was held back; the pretend node looks at it again when it changes. */
async function release(pod: string): Promise<void> {
  scene.node.holdPods.delete(pod);
  await expect.poll(() => scene.find(resources.pods, pod), soon).toBeDefined();
  const body = { metadata: { annotations: { "example.org/released": "yes" } } };
  await world.api.patch(resources.pods, { namespace: scene.namespace, name: pod }, { type: "merge", body });
}

describe("volumes", () => {
  const storage = (size: string, more: object = {}) => ({ size, storageClass: "grows", ...more });
  const tablespaces = (size: string) => [{ name: "big_data", storage: storage(size) }];

  it("of every kind grow in use, but where that is switched off, and never shrink", async () => {
    await scene.create("g", {
      instances: 2,
      storage: storage("1Gi"),
      walStorage: storage("1Gi"),
      tablespaces: tablespaces("1Gi"),
    });
    await scene.waitHealthy("g", 2);
    const names = ["g-1", "g-1-tbs-big-data", "g-1-wal", "g-2", "g-2-tbs-big-data", "g-2-wal"];
    expect(await volumeNames("g")).toEqual(names);
    const pods = (await world.api.list(resources.pods, { namespace: scene.namespace })).map((it) => it.metadata.uid);
    await scene.patchSpec("g", {
      storage: storage("2Gi"),
      walStorage: storage("3Gi", { resizeInUseVolumes: false }),
      tablespaces: tablespaces("4Gi"),
    });
    await expect.poll(() => sizeOf("g-2-tbs-big-data"), soon).toBe("4Gi");
    await scene.waitHealthy("g", 2);
    expect(await Promise.all(names.map(sizeOf))).toEqual(["2Gi", "4Gi", "1Gi", "2Gi", "4Gi", "1Gi"]);
    await scene.patchSpec("g", { storage: storage("1Gi"), walStorage: storage("3Gi", { resizeInUseVolumes: true }) });
    await expect.poll(() => sizeOf("g-2-wal"), soon).toBe("3Gi");
    await scene.waitHealthy("g", 2);
    expect(await Promise.all(names.map(sizeOf))).toEqual(["2Gi", "4Gi", "3Gi", "2Gi", "4Gi", "3Gi"]);
    const after = (await world.api.list(resources.pods, { namespace: scene.namespace })).map((it) => it.metadata.uid);
    expect(after).toEqual(pods);
  });

  it("that are being resized are named in the status", async () => {
    const note = async (conditions: object[]) => {
      const key = { namespace: scene.namespace, name: "g-1" };
      const patch = { type: "merge" as const, body: { status: { conditions } } };
      await world.api.patch(resources.persistentVolumeClaims, key, patch, { subresource: "status" });
    };
    await note([{ type: "Resizing", status: "True" }]);
    const resizing = await scene.waitStatus("g", "the volume", (it) => it.resizingPVC?.includes("g-1") ?? false);
    expect(resizing.status?.healthyPVC).not.toContain("g-1");
    await note([]);
    await scene.waitStatus("g", "no such volume", (it) => it.resizingPVC === undefined);
  });

  it("that wait for their pod to grow keep it from coming back as little as others, when size and resources change at once", async () => {
    await scene.create("w", { instances: 2, storage: storage("1Gi") });
    await scene.waitHealthy("w", 2);
    const pending = [{ type: "FileSystemResizePending", status: "True" }];
    for (const name of ["w-1", "w-2"]) {
      const key = { namespace: scene.namespace, name };
      const patch = { type: "merge" as const, body: { status: { conditions: pending } } };
      await world.api.patch(resources.persistentVolumeClaims, key, patch, { subresource: "status" });
    }
    await scene.patchSpec("w", { storage: storage("2Gi"), resources: { requests: { cpu: "20m" } } });
    const requested = async (name: string) => {
      const pod = await scene.find(resources.pods, name);
      return pod?.spec?.containers.find((it) => it.name === "postgres")?.resources?.requests?.["cpu"];
    };
    await expect
      .poll(() => Promise.all(["w-1", "w-2"].map(requested)), { ...soon, timeout: 60_000 })
      .toEqual(["20m", "20m"]);
    expect(await Promise.all(["w-1", "w-2"].map(sizeOf))).toEqual(["2Gi", "2Gi"]);
  });

  it("have the attributes class of their template, and follow it while they are in use", async () => {
    const classOf = async (name: string) => (await volume(name))?.spec?.volumeAttributesClassName;
    const withClass = (name: string) => ({ size: "1Gi", pvcTemplate: { volumeAttributesClassName: name } });
    await scene.create("a", { instances: 2, storage: withClass("silver"), walStorage: { size: "1Gi" } });
    await scene.waitHealthy("a", 2);
    const names = ["a-1", "a-2", "a-1-wal", "a-2-wal"];
    expect(await Promise.all(names.map(classOf))).toEqual(["silver", "silver", undefined, undefined]);
    await scene.patchSpec("a", { storage: withClass("gold"), walStorage: withClass("bronze") });
    for (const [name, expected] of [
      ["a-2", "gold"],
      ["a-2-wal", "bronze"],
    ] as const) {
      await expect.poll(() => classOf(name), soon).toBe(expected);
    }
    await scene.waitHealthy("a", 2);
    await scene.patchSpec("a", { storage: { pvcTemplate: null } });
    await lookTwice("a");
    expect(await Promise.all(names.map(classOf))).toEqual(["gold", "gold", "bronze", "bronze"]);
  });

  it("of a tablespace that was dropped go with the instance", async () => {
    await scene.patchSpec("g", { tablespaces: null });
    await scene.waitHealthy("g", 2);
    await scene.patchSpec("g", { instances: 1 });
    await scene.waitHealthy("g", 1);
    await expect.poll(() => volumeNames("g"), soon).toEqual(["g-1", "g-1-tbs-big-data", "g-1-wal"]);
  });

  it("that are full stop no growth, and nobody takes over from an instance that only lacks space", async () => {
    await scene.create("f", { instances: 2, storage: storage("1Gi") });
    await scene.waitHealthy("f", 2);
    const full = scene.node.instances.get("f-1");
    if (full) full.status = null;
    const key = { namespace: scene.namespace, name: "f-1" };
    const container = (state: object) => ({ name: "postgres", image: "i", imageID: "", restartCount: 1, ...state });
    const note = (containerStatuses: object[], ready: boolean) => {
      const conditions = [{ type: "Ready", status: ready ? "True" : "False" }];
      const body = { status: { containerStatuses, conditions } };
      return world.api.patch(resources.pods, key, { type: "merge", body }, { subresource: "status" });
    };
    await note([container({ ready: false, state: { terminated: { exitCode: 4 } } })], false);
    await scene.waitStatus("f", "the phase", (it) => it.phase === "Not enough disk space");
    await scene.patchSpec("f", { storage: storage("2Gi") });
    await expect.poll(() => sizeOf("f-1"), soon).toBe("2Gi");
    expect((await scene.cluster("f")).status?.targetPrimary).toBe("f-1");
    if (full) full.status = primaryStatus({ timeLineID: 1 });
    await note([container({ ready: true, state: { running: {} } })], true);
    const cluster = await scene.waitHealthy("f", 2);
    expect(cluster.status).toMatchObject({ currentPrimary: "f-1", timelineID: 1 });
  });

  it("for WAL are added to instances that run, ready to use, and the pods come back with them", async () => {
    await scene.create("n", { instances: 2 });
    await scene.waitHealthy("n", 2);
    await scene.patchSpec("n", { walStorage: { size: "1Gi" } });
    const isMounted = async (pod: string) =>
      (await scene.find(resources.pods, pod))?.spec?.volumes?.some(
        (it) => it.persistentVolumeClaim?.claimName === `${pod}-wal`,
      );
    for (const pod of ["n-2", "n-1"]) await expect.poll(() => isMounted(pod), soon).toBe(true);
    await scene.waitHealthy("n", 2);
    for (const name of ["n-1-wal", "n-2-wal"]) {
      const { metadata } = (await volume(name)) as PersistentVolumeClaim;
      expect(metadata.annotations?.["cnpg.io/pvcStatus"]).toBe("ready");
      expect(metadata.labels?.["cnpg.io/pvcRole"]).toBe("PG_WAL");
    }
  });

  it("for WAL stay in use when a definition without them comes past the webhooks, which is told", async () => {
    const uids = () =>
      Promise.all(["n-1", "n-2"].map(async (it) => (await scene.find(resources.pods, it))?.metadata.uid));
    const before = await uids();
    await scene.patchSpec("n", { walStorage: null });
    const { status } = await scene.waitStatus("n", "the phase", (it) => it.phase === "Invalid cluster definition");
    expect(status?.phaseReason).toContain("spec.walStorage cannot be removed");
    expect(status?.healthyPVC).toEqual(["n-1", "n-1-wal", "n-2", "n-2-wal"]);
    // What is new has them as well.
    await scene.patchSpec("n", { instances: 3 });
    await scene.waitStatus("n", "a third instance", (it) => it.readyInstances === 3 && it.jobCount === 0);
    expect(await volumeNames("n")).toContain("n-3-wal");
    await scene.patchSpec("n", { walStorage: { size: "1Gi" } });
    await scene.waitHealthy("n", 3);
    expect(await uids()).toEqual(before);
  });
});

describe("adoption", () => {
  it("makes pods and Services of the cluster's name that nobody owns anew, and starts without fences", async () => {
    const place = { namespace: scene.namespace, labels: { "cnpg.io/cluster": "o" } };
    await world.api.create(resources.persistentVolumeClaims, {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { ...place, name: "o-3", annotations: { "cnpg.io/nodeSerial": "3" } },
      spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
    });
    scene.node.holdPods.add("o-3");
    const labels = { ...place.labels, "cnpg.io/podRole": "instance" };
    const pod = await world.api.create(resources.pods, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { ...place, name: "o-3", labels },
      spec: { containers: [{ name: "postgres", image: "example.org/postgresql:17.2" }] },
    });
    const service = await world.api.create(resources.services, {
      apiVersion: "v1",
      kind: "Service",
      metadata: { ...place, name: "o-rw" },
      spec: { ports: [{ port: 5432 }] },
    });
    await world.api.create(resources.clusters, {
      apiVersion: "postgresql.cnpg.io/v1",
      kind: "Cluster",
      metadata: { namespace: scene.namespace, name: "o", annotations: { "cnpg.io/fencedInstances": '["*"]' } },
      spec: { instances: 1, imageName: "example.org/postgresql:17.2", storage: { size: "1Gi" } },
    });
    await expect
      .poll(async () => (await scene.find(resources.pods, "o-3"))?.metadata.ownerReferences?.length, soon)
      .toBe(1);
    await release("o-3");
    const cluster = await scene.waitHealthy("o", 1);
    expect(cluster.status?.currentPrimary).toBe("o-3");
    expect(cluster.metadata.annotations?.["cnpg.io/fencedInstances"]).toBeUndefined();
    expect((await scene.find(resources.pods, "o-3"))?.metadata.uid).not.toBe(pod.metadata.uid);
    expect((await scene.find(resources.services, "o-rw"))?.metadata.uid).not.toBe(service.metadata.uid);
    expect((await volume("o-3"))?.metadata.ownerReferences?.[0]?.uid).toBe(cluster.metadata.uid);
  });
});

describe("maintenance", () => {
  const window = (reusePVC: boolean) => ({ nodeMaintenanceWindow: { inProgress: true, reusePVC } });

  /** A pod goes, and the one that takes its place fits on no node. */
  async function unschedule(pod: string): Promise<void> {
    const before = (await scene.find(resources.pods, pod))?.metadata.uid;
    scene.node.holdPods.add(pod);
    await scene.node.killPod(pod);
    await expect
      .poll(async () => (await scene.find(resources.pods, pod))?.metadata.uid ?? before, soon)
      .not.toBe(before);
    await markUnschedulable(pod);
  }

  async function markUnschedulable(pod: string): Promise<void> {
    const condition = { type: "PodScheduled", status: "False", reason: "Unschedulable", message: "no node fits" };
    const patch = { type: "merge" as const, body: { status: { conditions: [condition] } } };
    const key = { namespace: scene.namespace, name: pod };
    await world.api.patch(resources.pods, key, patch, { subresource: "status" });
  }

  it("waits for a replica's volumes, or gives them up and clones it elsewhere, as the user says", async () => {
    await scene.create("m", { instances: 2 });
    await scene.waitHealthy("m", 2);
    const before = await volume("m-2");
    await scene.patchSpec("m", window(true));
    await unschedule("m-2");
    await lookTwice("m");
    expect((await volume("m-2"))?.metadata.uid).toBe(before?.metadata.uid);
    await scene.patchSpec("m", window(false));
    await expect
      .poll(async () => (await volume("m-2"))?.metadata.uid ?? before?.metadata.uid, soon)
      .not.toBe(before?.metadata.uid);
    await release("m-2");
    await scene.waitHealthy("m", 2);
    const events = (await scene.events()).filter((it) => it.involvedObject.name === "m").map((it) => it.message);
    expect(events).toContain("Deleted unschedulable pod m-2 PVCs");
  });

  it("never gives up the volumes of a primary", async () => {
    await scene.create("only", { instances: 1, ...window(false) });
    await scene.waitHealthy("only", 1);
    const before = await volume("only-1");
    await unschedule("only-1");
    await lookTwice("only");
    expect((await volume("only-1"))?.metadata.uid).toBe(before?.metadata.uid);
    expect((await volume("only-1"))?.metadata.deletionTimestamp).toBeUndefined();
    await release("only-1");
    await scene.waitHealthy("only", 1);
  });
});
