import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Backup } from "../../../src/api/generated/backup.ts";
import type { ScheduledBackup } from "../../../src/api/generated/scheduledbackup.ts";
import { resources } from "../../../src/kube/resources.ts";
import type { ContainerRef, ExecResult } from "../../../src/ports/pod-exec.ts";
import { openScene, type RunningOperator, type Scene, startOperator, startWorld, type World } from "./world.ts";

let world: World;
let scene: Scene;
let operator: RunningOperator;
/** Commands that pods were asked to run. */
let asked: { target: ContainerRef; command: readonly string[] }[] = [];
let answer: () => ExecResult;

const store = {
  destinationPath: "s3://bucket/",
  s3Credentials: {
    accessKeyId: { name: "keys", key: "id" },
    secretAccessKey: { name: "keys", key: "secret" },
  },
};

const start = () =>
  startOperator(
    world,
    scene.namespace,
    undefined,
    {},
    {
      async run(target, command) {
        asked.push({ target, command });
        return answer();
      },
    },
  );

beforeAll(async () => {
  world = await startWorld();
  scene = await openScene(world);
  operator = start();
  await scene.create("c", { instances: 2, backup: { barmanObjectStore: store } });
  await scene.waitHealthy("c", 2);
});

beforeEach(() => {
  asked = [];
  answer = () => ({ stdout: "", stderr: "", exitCode: 0 });
  const standby = scene.node.instances.get("c-2");
  if (standby) standby.override = { isWalReceiverActive: true };
});

afterAll(async () => {
  await operator?.stop();
  await scene?.stop();
  await world?.stop();
});

/** Waits also through the pauses between two looks of the operator. */
const eventually = <T>(look: () => T) => expect.poll(look, { timeout: 60_000 });

const timesAsked = (name: string) => asked.filter(({ command }) => command.at(-1) === name).length;

const create = (name: string, spec: Partial<Backup["spec"]> = {}) =>
  world.api.create(resources.backups, {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Backup",
    metadata: { namespace: scene.namespace, name },
    spec: { cluster: { name: "c" }, method: "barmanObjectStore", ...spec },
  } as Backup);
const status = async (name: string) => (await scene.find(resources.backups, name))?.status;
const phase = async (name: string) => (await status(name))?.phase;
const setStatus = (name: string, body: Backup["status"]) =>
  world.api.patch(
    resources.backups,
    { namespace: scene.namespace, name },
    { type: "merge", body: { status: body } },
    { subresource: "status" },
  );
const reasons = async (name: string) =>
  (await scene.events()).filter((it) => it.involvedObject.name === name).map((it) => it.reason);

describe("a Backup", () => {
  it("is started in the standby, and the next one waits until it has ended", async () => {
    await create("first");
    await eventually(() => phase("first")).toBe("started");
    await create("second");
    await eventually(() => phase("second")).toBe("pending");
    await eventually(() => asked.length).toBe(1);
    expect(asked[0]).toEqual({
      target: { namespace: scene.namespace, pod: "c-2", container: "postgres" },
      command: ["/controller/manager", "backup", "first"],
    });
    expect(await status("first")).toMatchObject({
      method: "barmanObjectStore",
      instanceID: { podName: "c-2" },
      majorVersion: 17,
    });
    const condition = (await scene.cluster("c")).status?.conditions?.find((it) => it.type === "LastBackupSucceeded");
    expect(condition).toMatchObject({ status: "False", reason: "BackupStarted" });
    await setStatus("first", { phase: "completed" });
    await eventually(() => phase("second")).toBe("started");
    await setStatus("second", { phase: "completed" });
  });

  it("fails with the pod's own words when the pod refuses, and says so in the Cluster", async () => {
    answer = () => ({ stdout: "", stderr: "no object store is configured in the cluster\n", exitCode: 1 });
    await create("refused");
    await eventually(() => phase("refused")).toBe("failed");
    expect((await status("refused"))?.error).toBe("no object store is configured in the cluster");
    const cluster = await scene.cluster("c");
    const condition = cluster.status?.conditions?.find((it) => it.type === "LastBackupSucceeded");
    expect(condition).toMatchObject({ status: "False", reason: "LastBackupFailed" });
    expect(cluster.status?.lastFailedBackup).toMatch(/^\d{4}-/);
    await eventually(() => reasons("refused")).toContain("Failed");
  });

  it("fails for good without its prerequisites", async () => {
    await create("plugged", { method: "plugin", pluginConfiguration: { name: "barman-cloud.cloudnative-pg.io" } });
    await eventually(() => phase("plugged")).toBe("failed");
    expect((await status("plugged"))?.error).toContain("no plugin configured");
    await eventually(() => reasons("plugged")).toContain("ClusterHasNoBackupExecutorPlugin");
    expect(asked).toEqual([]);
  });

  it("waits for a cluster that does not exist yet", async () => {
    await create("early", { cluster: { name: "later" } });
    await eventually(() => phase("early")).toBe("pending");
    await scene.create("later", { instances: 1, backup: { barmanObjectStore: store } });
    await scene.waitHealthy("later", 1);
    await eventually(() => phase("early")).toBe("started");
    await setStatus("early", { phase: "completed" });
  });

  it("begins anew when its pod is replaced, and fails when the manager forgot it", async () => {
    await create("moved");
    await eventually(() => timesAsked("moved")).toBe(1);
    const noted = (await status("moved"))?.instanceID;
    await setStatus("moved", { instanceID: { ...noted, ContainerID: "containerd://before" } });
    await eventually(() => timesAsked("moved")).toBe(2);
    await eventually(() => reasons("moved")).toContain("ReStarting");
    const standby = scene.node.instances.get("c-2");
    if (standby) standby.override = { isWalReceiverActive: true, sessionID: "another-life" };
    await setStatus("moved", { error: "look again" });
    await eventually(() => phase("moved")).toBe("failed");
    expect((await status("moved"))?.error).toBe("instance manager was restarted during backup on pod c-2");
  });

  it("is told to the pod by the next operator when the last one ended in between", async () => {
    await create("handed");
    await eventually(() => timesAsked("handed")).toBe(1);
    await operator.stop();
    asked = [];
    const standby = scene.node.instances.get("c-2");
    if (standby) standby.override = { isWalReceiverActive: true, cnpgTs: {} };
    operator = start();
    await eventually(() => timesAsked("handed")).toBe(1);
    await setStatus("handed", { phase: "completed" });
  });
});

describe("a ScheduledBackup", () => {
  const schedule = (name: string, spec: Partial<ScheduledBackup["spec"]>) =>
    world.api.create(resources.scheduledBackups, {
      apiVersion: "postgresql.cnpg.io/v1",
      kind: "ScheduledBackup",
      metadata: { namespace: scene.namespace, name },
      spec: { schedule: "0 0 0 1 1 *", cluster: { name: "c" }, method: "barmanObjectStore", ...spec },
    } as ScheduledBackup);
  const children = async (name: string) =>
    world.api.list(resources.backups, {
      namespace: scene.namespace,
      labelSelector: `cnpg.io/scheduled-backup=${name}`,
    });
  const finish = async (name: string) => {
    for (const child of await children(name)) await setStatus(child.metadata.name ?? "", { phase: "completed" });
  };

  it("takes one at once when asked to, owned by the cluster, and then waits for its time", async () => {
    await schedule("now", { immediate: true, backupOwnerReference: "cluster" });
    await eventually(async () => (await children("now")).length).toBe(1);
    const [child] = await children("now");
    expect(child?.metadata.labels).toMatchObject({ "cnpg.io/cluster": "c", "cnpg.io/immediateBackup": "true" });
    expect(child?.metadata.ownerReferences?.[0]).toMatchObject({ kind: "Cluster", name: "c" });
    await finish("now");
    await eventually(
      async () => (await scene.find(resources.scheduledBackups, "now"))?.status?.nextScheduleTime,
    ).toMatch(/^\d{4}-01-01T00:00:00Z$/);
    expect(await children("now")).toHaveLength(1);
  });

  it("takes one when its time comes, and none while it is suspended", async () => {
    await schedule("often", { schedule: "@every 1s" });
    await schedule("never", { schedule: "@every 1s", suspend: true });
    await eventually(async () => (await children("often")).length).toBe(1);
    await finish("often");
    await eventually(async () => (await children("often")).length).toBe(2);
    await world.api.delete(resources.scheduledBackups, { namespace: scene.namespace, name: "often" });
    await finish("often");
    expect(await children("never")).toEqual([]);
  });
});
