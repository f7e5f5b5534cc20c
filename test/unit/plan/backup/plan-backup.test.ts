import { describe, expect, it } from "vitest";
import type { Backup } from "../../../../src/api/generated/backup.ts";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import { type ObservedBackup, planBackup } from "../../../../src/plan/backup/plan-backup.ts";
import type { PolledInstance } from "../../../../src/plan/cluster/observed.ts";
import { answered, aPod, aStatus, primaryStatus, silent } from "../cluster/fixtures.ts";

const now = new Date("2026-11-30T10:00:30Z");
const image = "example.org/postgresql:17.2";
const plugin = "barman-cloud.cloudnative-pg.io";

const aBackup = (spec: Partial<Backup["spec"]> = {}, status?: Backup["status"], name = "b"): Backup => ({
  apiVersion: "postgresql.cnpg.io/v1",
  kind: "Backup",
  metadata: { namespace: "ns", name, uid: `uid-${name}`, creationTimestamp: "2026-11-30T10:00:00Z" },
  spec: { cluster: { name: "c" }, method: "plugin", pluginConfiguration: { name: plugin }, ...spec },
  ...(status ? { status } : {}),
});
const aCluster = (spec: Partial<Cluster["spec"]> = {}, annotations: Record<string, string> = {}): Cluster => ({
  apiVersion: "postgresql.cnpg.io/v1",
  kind: "Cluster",
  metadata: { namespace: "ns", name: "c", uid: "uid-c", annotations },
  spec: { instances: 3, plugins: [{ name: plugin }], ...spec },
  status: { targetPrimary: "c-1", currentPrimary: "c-1", image },
});

function pod(name: string, containerID = `containerd://${name}`) {
  const base = aPod(aCluster(), Number(name.slice(2)));
  return {
    ...base,
    spec: { ...base.spec, containers: [{ name: "postgres", image }] },
    status: { ...base.status, containerStatuses: [{ name: "postgres", containerID, ready: true }] },
  } as typeof base;
}
const standby = (name: string, received: string, fields = {}) =>
  answered(pod(name), aStatus({ receivedLsn: received, isWalReceiverActive: true, sessionID: `s-${name}`, ...fields }));
const three: PolledInstance[] = [
  answered(pod("c-1"), primaryStatus({ sessionID: "s-c-1" })),
  standby("c-2", "0/5000000"),
  standby("c-3", "0/6000000"),
];
const seen = (fields: Partial<ObservedBackup> = {}): ObservedBackup => ({
  invalid: null,
  cluster: aCluster(),
  backups: [],
  instances: three,
  volumeSnapshots: false,
  ...fields,
});
const started = (fields: object = {}) => ({
  phase: "started",
  instanceID: { podName: "c-3", ContainerID: "containerd://c-3", sessionID: "s-c-3", ...fields },
});

describe("planBackup", () => {
  it("starts on the standby with the most WAL, and notes where", () => {
    expect(planBackup(aBackup(), seen(), now)).toMatchObject({
      kind: "start",
      pod: "c-3",
      status: { ...started(), method: "plugin", majorVersion: 17, reconciliationStartedAt: "2026-11-30T10:00:30Z" },
      events: [{ reason: "Starting" }],
    });
  });

  it.each<[string, Backup, Partial<ObservedBackup>, string]>([
    ["the primary when asked for", aBackup({ target: "primary" }), {}, "c-1"],
    [
      "the primary when the cluster says so",
      aBackup(),
      { cluster: aCluster({ backup: { target: "primary" } }) },
      "c-1",
    ],
    [
      "a standby that streams rather than one that has more",
      aBackup(),
      { instances: [...three.slice(0, 2), standby("c-3", "0/6000000", { isWalReceiverActive: false })] },
      "c-2",
    ],
    ["the primary without a standby", aBackup(), { instances: three.slice(0, 1) }, "c-1"],
  ])("takes %s", (_name, backup, fields, expected) => {
    expect(planBackup(backup, seen(fields), now)).toMatchObject({ kind: "start", pod: expected });
  });

  it.each<[string, Backup, Partial<ObservedBackup>, string]>([
    [
      "a hibernated cluster",
      aBackup(),
      { cluster: aCluster({}, { "cnpg.io/hibernation": "on" }) },
      "ClusterIsHibernated",
    ],
    ["no plugin", aBackup(), { cluster: aCluster({ plugins: [] }) }, "ClusterHasNoBackupExecutorPlugin"],
    [
      "a plugin that is switched off",
      aBackup(),
      { cluster: aCluster({ plugins: [{ name: plugin, enabled: false }] }) },
      "ClusterHasNoBackupExecutorPlugin",
    ],
    ["no backup section", aBackup({ method: "barmanObjectStore" }), {}, "ClusterHasBackupConfigured"],
    [
      "no object store",
      aBackup({ method: "barmanObjectStore" }),
      { cluster: aCluster({ backup: { target: "primary" } }) },
      "ClusterHasNoBarmanSection",
    ],
  ])("fails for good with %s", (_name, backup, fields, event) => {
    expect(planBackup(backup, seen(fields), now)).toMatchObject({ kind: "fail", event: { reason: event } });
  });

  it.each<[string, Partial<ObservedBackup>, number]>([
    ["the cluster", { cluster: undefined }, 30_000],
    ["an older backup", { backups: [{ ...aBackup({}, undefined, "a") }] }, 10_000],
    ["one that runs", { backups: [aBackup({}, started(), "z")] }, 10_000],
    ["a primary that answers", { instances: [silent(pod("c-1"))] }, 30_000],
    ["a primary", { instances: [] }, 30_000],
  ])("waits for %s", (_name, fields, pause) => {
    const decision = planBackup(aBackup(), seen(fields), now);
    expect(decision).toMatchObject({ kind: "wait", status: { phase: "pending" }, requeueAfterMs: pause });
  });

  it("is not held up by one whose definition is wrong, or that has ended", () => {
    const others = ["invalid backup definition", "completed", "failed"].map((phase, at) =>
      aBackup({}, { phase }, `a${at}`),
    );
    expect(planBackup(aBackup(), seen({ backups: others }), now).kind).toBe("start");
  });

  it.each<[string, object, Partial<ObservedBackup>, string]>([
    ["goes on", {}, {}, "leave"],
    [
      "goes on while the instance is silent",
      {},
      { instances: [three[0] as PolledInstance, silent(pod("c-3"))] },
      "leave",
    ],
    ["begins anew when its pod is gone", {}, { instances: three.slice(0, 2) }, "start"],
    ["begins anew when its container was replaced", { ContainerID: "containerd://old" }, {}, "start"],
    ["fails when the manager forgot it", { sessionID: "another" }, {}, "fail"],
  ])("a started one %s", (_name, noted, fields, kind) => {
    expect(planBackup(aBackup({}, started(noted)), seen(fields), now).kind).toBe(kind);
  });

  it("a started one on the primary begins anew after a change of primary", () => {
    const backup = aBackup({ target: "primary" }, started({}));
    expect(planBackup(backup, seen(), now)).toMatchObject({ kind: "start", pod: "c-1" });
  });

  it("leaves what has ended, and refuses a wrong definition", () => {
    expect(planBackup(aBackup({}, { phase: "completed" }), seen(), now).kind).toBe("leave");
    expect(planBackup(aBackup(), seen({ invalid: "spec.method: wrong" }), now)).toMatchObject({
      kind: "refuse",
      status: { phase: "invalid backup definition", error: "spec.method: wrong" },
    });
  });
});
