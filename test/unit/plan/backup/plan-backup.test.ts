import { describe, expect, it } from "vitest";
import type { Backup } from "../../../../src/api/generated/backup.ts";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import type { StartKnowledge } from "../../../../src/plan/backup/judge-start.ts";
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
  start: { accepted: true },
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

  it("finds PostgreSQL's container by its name, whatever stands before it", () => {
    const withProxy = ({ pod: given, ...rest }: PolledInstance): PolledInstance => {
      const [own] = given.spec?.containers ?? [];
      const proxy = { name: "proxy", image: "mesh:1", containerID: "containerd://proxy", ready: true };
      const containerStatuses = [
        { ...proxy, imageID: "", restartCount: 0 },
        ...(given.status?.containerStatuses ?? []),
      ];
      const spec = { ...given.spec, containers: own ? [proxy, own] : [proxy] };
      return { ...rest, pod: { ...given, spec, status: { ...given.status, containerStatuses } } } as PolledInstance;
    };
    expect(planBackup(aBackup(), seen({ instances: three.map(withProxy) }), now)).toMatchObject({
      kind: "start",
      status: started(),
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
    ["no backup section", aBackup({ method: "barmanObjectStore" }), {}, "ClusterHasNoBackupSection"],
    [
      "no object store",
      aBackup({ method: "barmanObjectStore" }),
      { cluster: aCluster({ backup: { target: "primary" } }) },
      "ClusterHasNoBarmanSection",
    ],
  ])("fails for good with %s", (_name, backup, fields, event) => {
    expect(planBackup(backup, seen(fields), now)).toMatchObject({ kind: "fail", event: { reason: event } });
  });

  it("says of a plugin that is not there what a pod says of it", () => {
    const cluster = aCluster({ plugins: [{ name: plugin, enabled: false }] });
    const decision = planBackup(aBackup(), seen({ cluster }), now);
    const message = expect.stringMatching(/^requested plugin is not available: /);
    expect(decision).toMatchObject({ kind: "fail", message, event: { type: "Warning", message } });
  });

  it("tells a missing backup section under its former reason too", () => {
    const decision = planBackup(aBackup({ method: "barmanObjectStore" }), seen({}), now);
    expect(decision).toMatchObject({ kind: "fail", alias: { type: "Warning", reason: "ClusterHasBackupConfigured" } });
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
    // Another backup in front is no news; what is missing is.
    if (decision.kind === "wait" && !fields.backups) expect(decision.event?.type).toBe("Warning");
  });

  it("is not held up by one whose definition is wrong, that has ended, or that a person holds back", () => {
    const others = ["invalid backup definition", "completed", "failed"].map((phase, at) =>
      aBackup({}, { phase }, `a${at}`),
    );
    const held = aBackup({}, undefined, "a9");
    held.metadata.annotations = { "cnpg.io/reconciliationLoop": "disabled" };
    others.push(held);
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

  it.each<[string, Backup["status"], Partial<ObservedBackup>, string]>([
    ["its pod is gone", { phase: "running" }, { instances: three.slice(0, 2) }, "cut off: pod c-3 is gone"],
    [
      "its container was replaced",
      { phase: "running", ...{ instanceID: { podName: "c-3", ContainerID: "containerd://old" } } },
      {},
      "the container of pod c-3 was replaced",
    ],
    ["it could not archive", { phase: "walArchivingFailing" }, {}, "WAL archiving does not work"],
    ["another operator was about to finish its snapshots", { phase: "finalizing" }, {}, "volume snapshots"],
  ])("a Backup that began fails when %s", (_name, status, fields, message) => {
    const decision = planBackup(aBackup({}, { ...started(), ...status }), seen(fields), now);
    expect(decision).toMatchObject({ kind: "fail", message: expect.stringContaining(message) });
  });

  it.each<[string, PolledInstance[], string]>([
    ["is being waited with by a manager of ours", [standby("c-3", "0/1", { cnpgTs: { backups: ["uid-b"] } })], "leave"],
    ["is unknown to a manager of ours", [standby("c-3", "0/1", { cnpgTs: { backups: [] } })], "ask"],
    ["lies with a manager that does not answer", [silent(pod("c-3"))], "leave"],
    ["has lost its pod", three.slice(0, 2), "start"],
    ["lies with CloudNativePG's, which has given up", three, "fail"],
  ])("one that waits for an archive that fails, and %s", (_name, instances, kind) => {
    const backup = aBackup({ method: "barmanObjectStore" }, { ...started(), phase: "walArchivingFailing" });
    const cluster = aCluster({ backup: { barmanObjectStore: { destinationPath: "s3://b" } } });
    expect(planBackup(backup, seen({ cluster, instances: [...instances, ...three.slice(0, 1)] }), now).kind).toBe(kind);
  });

  const next = { sessionID: "next" };
  it.each<[string, "running" | "started", "primary" | "prefer-standby", object, string]>([
    [
      "looks into the archive, is left to it",
      "running",
      "prefer-standby",
      { ...next, cnpgTs: { endsBackups: true } },
      "leave",
    ],
    ["does not look there, fails", "running", "prefer-standby", { ...next, cnpgTs: {} }, "fail"],
    ["finds it not begun, is begun anew", "started", "prefer-standby", { ...next, cnpgTs: {} }, "start"],
    [
      "has not come, but is no primary any more, is cut off",
      "running",
      "primary",
      { cnpgTs: { endsBackups: true } },
      "fail",
    ],
    ["is CloudNativePG's, fails", "started", "prefer-standby", next, "fail"],
  ])("one whose manager's next session %s", (_name, phase, target, status, kind) => {
    const backup = aBackup({ method: "barmanObjectStore", target }, { ...started(), phase });
    const cluster = aCluster({ backup: { barmanObjectStore: { destinationPath: "s3://b" } } });
    const instances = [...three.slice(0, 2), standby("c-3", "0/6000000", status)];
    expect(planBackup(backup, seen({ cluster, instances }), now).kind).toBe(kind);
  });

  it("is begun anew three times, whichever operator counts", () => {
    const backup = aBackup({}, started());
    const again = () => planBackup(backup, seen({ instances: three.slice(0, 2) }), now);
    expect(again()).toMatchObject({ kind: "start", restarts: 1 });
    backup.metadata.annotations = { "cnpg-ts.dev/backupRestarts": "2" };
    expect(again()).toMatchObject({ kind: "start", restarts: 3 });
    backup.metadata.annotations = { "cnpg-ts.dev/backupRestarts": "3" };
    expect(again()).toMatchObject({ kind: "fail", message: expect.stringContaining("begun anew 3 times") });
  });

  it("a snapshot that another operator began fails with the reason", () => {
    const backup = aBackup({ method: "volumeSnapshot" }, started());
    const cluster = aCluster({ backup: { volumeSnapshot: {} } });
    const decision = planBackup(backup, seen({ cluster, volumeSnapshots: true }), now);
    expect(decision).toMatchObject({ kind: "fail", message: expect.stringContaining("not supported") });
  });

  const at = (secondsAgo: number) => ({
    ...started(),
    reconciliationStartedAt: new Date(now.getTime() - secondsAgo * 1_000).toISOString(),
  });
  const ours = (backups?: string[]) => [
    ...three.slice(0, 2),
    standby("c-3", "0/6000000", { cnpgTs: backups ? { backups } : {} }),
  ];
  const nobody: StartKnowledge = { accepted: false };
  const lost = (mayHaveRun: boolean): StartKnowledge => ({ ...nobody, unheard: { reason: "cut off", mayHaveRun } });
  const inTree = { method: "barmanObjectStore" } as const;

  it.each<[string, Partial<Backup["spec"]>, number, PolledInstance[], StartKnowledge, object]>([
    ["ours that lists it", {}, 5, ours(["uid-b"]), nobody, { kind: "leave", taken: true }],
    ["ours that does not list it", {}, 5, ours([]), { ...nobody, accepted: true }, { kind: "ask", pod: "c-3" }],
    [
      "an older one of ours that accepted",
      {},
      5,
      ours(),
      { ...nobody, accepted: true },
      { kind: "leave", taken: true },
    ],
    ["an older one of ours that nobody asked", {}, 5, ours(), nobody, { kind: "ask", pod: "c-3" }],
    ["ours after a lost answer", {}, 5, ours([]), lost(true), { kind: "ask", pod: "c-3" }],
    [
      "ours that was asked for long",
      {},
      301,
      ours([]),
      lost(true),
      { kind: "fail", message: expect.stringContaining("cut off") },
    ],
    ["another's that accepted", {}, 5, three, { ...nobody, accepted: true }, { kind: "leave", taken: true }],
    ["another's at first", {}, 5, three, nobody, { kind: "leave", requeueAfterMs: 116_000 }],
    ["another's after a while", {}, 121, three, nobody, { kind: "ask", pod: "c-3" }],
    ["another's that was not reached", {}, 5, three, lost(false), { kind: "ask", pod: "c-3" }],
    ["another's that was never reached", {}, 301, three, lost(false), { kind: "fail" }],
    ["another's that may be taking it", {}, 3_600, three, lost(true), { kind: "leave", requeueAfterMs: 60_000 }],
    ["another's of yesterday", {}, 86_401, three, lost(true), { kind: "fail" }],
    ["another's that would say running", inTree, 121, three, lost(true), { kind: "ask", pod: "c-3" }],
    [
      "a silent one",
      {},
      500,
      [...three.slice(0, 2), silent(pod("c-3"))],
      lost(false),
      { kind: "leave", requeueAfterMs: 30_000 },
    ],
  ])("a claimed start: %s", (_name, spec, secondsAgo, instances, start, expected) => {
    const cluster = aCluster({ backup: { barmanObjectStore: { destinationPath: "s3://b" } } });
    const decision = planBackup(aBackup(spec, at(secondsAgo)), seen({ cluster, instances, start }), now);
    expect(decision).toMatchObject(expected);
  });

  it("a start that the operator before noted as accepted is not repeated", () => {
    const backup = aBackup({}, at(500));
    backup.metadata.annotations = { "cnpg-ts.dev/backupAccepted": backup.status?.reconciliationStartedAt ?? "" };
    expect(planBackup(backup, seen({ start: nobody }), now)).toMatchObject({ kind: "leave", taken: true });
    backup.metadata.annotations = { "cnpg-ts.dev/backupAccepted": "2026-11-30T09:00:00Z" };
    expect(planBackup(backup, seen({ start: nobody }), now)).toMatchObject({ kind: "ask" });
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
