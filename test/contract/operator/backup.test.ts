import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Backup } from "../../../src/api/generated/backup.ts";
import type { ScheduledBackup } from "../../../src/api/generated/scheduledbackup.ts";
import { loadKubeconfigConnection } from "../../../src/kube/kubeconfig.ts";
import { createPodExec } from "../../../src/kube/pod-exec.ts";
import { resources } from "../../../src/kube/resources.ts";
import { type ContainerRef, ExecError, type ExecResult } from "../../../src/ports/pod-exec.ts";
import {
  closeStage,
  openScene,
  type RunningOperator,
  type Scene,
  startOperator,
  startWorld,
  type World,
} from "./world.ts";

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

afterAll(() => closeStage({ world, scene, operator }));

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
/** Makes the standby one of our own instances. */
const ours = (fields: object) => {
  const standby = scene.node.instances.get("c-2");
  if (standby) standby.override = { isWalReceiverActive: true, cnpgTs: fields };
};
/** Whether the operator has decided something for this reason. */
const decided = (because: string) =>
  operator.logs.records.some(({ fields }) => String(fields["because"] ?? "").includes(because));
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
    const restarts = (await scene.find(resources.backups, "moved"))?.metadata.annotations?.[
      "cnpg-ts.dev/backupRestarts"
    ];
    expect(restarts).toBe("1");
    const standby = scene.node.instances.get("c-2");
    if (standby) standby.override = { isWalReceiverActive: true, sessionID: "another-life" };
    await setStatus("moved", { error: "look again" });
    await eventually(() => phase("moved")).toBe("failed");
    expect((await status("moved"))?.error).toBe("instance manager was restarted during backup on pod c-2");
  });

  it("is told to the pod by the next operator when the last one ended in between", async () => {
    ours({ backups: [] });
    await create("handed");
    await eventually(() => timesAsked("handed")).toBeGreaterThanOrEqual(1);
    await operator.stop();
    asked = [];
    operator = start();
    await eventually(() => timesAsked("handed")).toBeGreaterThanOrEqual(1);
    await setStatus("handed", { phase: "completed" });
  });
});

describe("a Backup whose start nobody can confirm", () => {
  const lost = (mayHaveRun: boolean) => () => {
    throw new ExecError("the connection was cut", { mayHaveRun });
  };

  it("is asked for again in an instance of ours, until it lists it", async () => {
    ours({ backups: [] });
    answer = lost(true);
    await create("cut");
    await eventually(() => timesAsked("cut")).toBeGreaterThanOrEqual(4);
    expect(await phase("cut")).toBe("started");
    const uid = (await scene.find(resources.backups, "cut"))?.metadata.uid ?? "";
    ours({ backups: [uid] });
    await setStatus("cut", { error: "look again" });
    await eventually(() => decided("takes it")).toBe(true);
    await setStatus("cut", { phase: "completed" });
  });

  it("was certainly not asked for where no session with the container opens", async () => {
    const exec = createPodExec(loadKubeconfigConnection(world.controlPlane.kubeconfig));
    // No kubelet serves the first, and the second does not exist.
    for (const pod of ["c-1", "nobody"]) {
      const target = { namespace: scene.namespace, pod, container: "postgres" };
      const running = exec.run(target, ["/controller/manager", "backup", "b"], {
        signal: new AbortController().signal,
      });
      await expect(running).rejects.toMatchObject({ name: "ExecError", mayHaveRun: false });
    }
  });

  it("is not asked for twice elsewhere when the question may have arrived, nor failed", async () => {
    answer = lost(true);
    await create("quiet");
    await eventually(() => timesAsked("quiet")).toBe(1);
    await setStatus("quiet", { error: "look again" });
    await eventually(() => decided("is about to be told of it")).toBe(true);
    expect(await phase("quiet")).toBe("started");
    expect(timesAsked("quiet")).toBe(1);
    await setStatus("quiet", { phase: "completed" });
  });

  it("is asked for by the next operator once the last one cannot be about to, and by no third one", async () => {
    await operator.stop();
    await create("claimed");
    const startedAt = `${new Date(Date.now() - 180_000).toISOString().slice(0, 19)}Z`;
    const session = scene.node.instances.get("c-2")?.status?.sessionID ?? "";
    const instanceID = { podName: "c-2", ContainerID: "", sessionID: session };
    await setStatus("claimed", { phase: "started", reconciliationStartedAt: startedAt, instanceID });
    operator = start();
    await eventually(() => timesAsked("claimed")).toBe(1);
    const noted = async () =>
      (await scene.find(resources.backups, "claimed"))?.metadata.annotations?.["cnpg-ts.dev/backupAccepted"];
    await eventually(noted).toBe(startedAt);
    await operator.stop();
    operator = start();
    await eventually(() => decided("has accepted it")).toBe(true);
    expect(timesAsked("claimed")).toBe(1);
    await setStatus("claimed", { phase: "completed" });
  });
});

describe("a Backup that runs", () => {
  it("fails when its pod is killed, and the next one begins", async () => {
    await create("nightly");
    await eventually(() => phase("nightly")).toBe("started");
    await setStatus("nightly", { phase: "running" });
    await create("behind");
    await eventually(() => phase("behind")).toBe("pending");
    await scene.node.killPod("c-2");
    await eventually(() => phase("nightly")).toBe("failed");
    expect((await status("nightly"))?.error).toContain("pod c-2 is gone");
    await eventually(() => phase("behind")).toBe("started");
    await setStatus("behind", { phase: "completed" });
    await scene.waitHealthy("c", 2, 60_000);
  });

  it("fails when the pod is back in another container", async () => {
    await create("swapped");
    await eventually(() => phase("swapped")).toBe("started");
    const noted = (await status("swapped"))?.instanceID;
    await setStatus("swapped", { phase: "running", instanceID: { ...noted, ContainerID: "containerd://before" } });
    await eventually(() => phase("swapped")).toBe("failed");
    expect((await status("swapped"))?.error).toContain("was replaced");
  });

  it("frees a cluster that is to be recovered from it as soon as it has ended", async () => {
    await create("source");
    await eventually(() => phase("source")).toBe("started");
    await scene.create("copy", {
      instances: 1,
      bootstrap: { recovery: { backup: { name: "source" } } },
      backup: { barmanObjectStore: { ...store, serverName: "copy" } },
    });
    await scene.waitStatus("copy", "a phase", (it) => it.phase !== undefined);
    expect(await scene.find(resources.jobs, "copy-1-full-recovery")).toBeUndefined();
    await setStatus("source", {
      phase: "completed",
      backupId: "20261130T100000",
      serverName: "c",
      ...store,
    });
    await scene.waitHealthy("copy", 1, 60_000);
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

  it("whose name is too long for a label finds its children all the same", async () => {
    const name = `weekly-${"x".repeat(80)}`;
    await schedule(name, { immediate: true });
    const made = async () =>
      (await world.api.list(resources.backups, { namespace: scene.namespace })).filter((it) =>
        it.metadata.name?.startsWith(name),
      );
    await eventually(async () => (await made()).length).toBe(1);
    await eventually(
      async () => (await scene.find(resources.scheduledBackups, name))?.status?.lastScheduleTime,
    ).toBeDefined();
    const [child] = await made();
    await setStatus(child?.metadata.name ?? "", { phase: "completed" });
    await eventually(
      async () => (await scene.find(resources.scheduledBackups, name))?.status?.nextScheduleTime,
    ).toMatch(/^\d{4}-01-01T00:00:00Z$/);
    expect(await made()).toHaveLength(1);
  });

  it("tells when its first time is, and why no Backup is made where the plugin has no name", async () => {
    await schedule("yearly", {});
    await schedule("nameless", { method: "plugin", immediate: true });
    const first = async () => {
      const events = await world.api.list(resources.events, { namespace: scene.namespace });
      return events.find((it) => it.involvedObject.name === "yearly");
    };
    await eventually(async () => (await first())?.message).toMatch(
      /^Scheduled first backup by \d{4}-01-01 00:00:00 \+0000 UTC$/,
    );
    expect(await first()).toMatchObject({
      type: "Normal",
      reason: "BackupSchedule",
      source: { component: "cloudnative-pg-scheduledbackup" },
    });
    await eventually(async () => (await scene.find(resources.scheduledBackups, "nameless"))?.status?.error).toContain(
      "spec.pluginConfiguration",
    );
    expect(await children("nameless")).toEqual([]);
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

describe("a Backup on the primary", () => {
  it("begins anew on the next one after a switchover, and the old one cannot end it", async () => {
    await scene.waitHealthy("c", 2, 60_000);
    await create("primary", { target: "primary" });
    await eventually(() => timesAsked("primary")).toBe(1);
    expect(asked[0]?.target.pod).toBe("c-1");
    await scene.patchStatus("c", { targetPrimary: "c-2", targetPrimaryTimestamp: new Date().toISOString() });
    await eventually(async () => (await status("primary"))?.instanceID?.podName).toBe("c-2");
    await eventually(() => timesAsked("primary")).toBe(2);
    expect(asked[1]?.target.pod).toBe("c-2");
    await eventually(() => reasons("primary")).toContain("ReStarting");
    await setStatus("primary", { phase: "completed" });
  });

  it("fails when the primary changes while its data is copied", async () => {
    await scene.waitHealthy("c", 2, 60_000);
    await create("copying", { target: "primary" });
    await eventually(() => phase("copying")).toBe("started");
    await setStatus("copying", { phase: "running" });
    await scene.patchStatus("c", { targetPrimary: "c-1", targetPrimaryTimestamp: new Date().toISOString() });
    await eventually(() => phase("copying")).toBe("failed");
    expect((await status("copying"))?.error).toContain("c-2 is not the primary any more");
  });
});
