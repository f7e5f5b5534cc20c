import { describe, expect, it } from "vitest";
import type { Backup } from "../../../../src/api/generated/backup.ts";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import type { ScheduledBackup } from "../../../../src/api/generated/scheduledbackup.ts";
import { type ObservedSchedule, planScheduledBackup } from "../../../../src/plan/backup/plan-scheduled-backup.ts";

const now = new Date("2026-11-30T10:00:30Z");
const aSchedule = (
  spec: Partial<ScheduledBackup["spec"]> = {},
  status?: ScheduledBackup["status"],
): ScheduledBackup => ({
  apiVersion: "postgresql.cnpg.io/v1",
  kind: "ScheduledBackup",
  metadata: { namespace: "ns", name: "nightly", uid: "uid-s" },
  spec: { schedule: "0 0 * * * *", cluster: { name: "c" }, method: "plugin", ...spec },
  ...(status ? { status } : {}),
});
const cluster = {
  apiVersion: "postgresql.cnpg.io/v1",
  kind: "Cluster",
  metadata: { name: "c", uid: "uid-c" },
} as Cluster;
const observed = (fields: Partial<ObservedSchedule> = {}): ObservedSchedule => ({
  invalid: null,
  backups: [],
  cluster,
  timeZone: "UTC",
  ...fields,
});
const child = (phase: string, immediate = "false"): Backup => ({
  apiVersion: "postgresql.cnpg.io/v1",
  kind: "Backup",
  metadata: {
    name: "nightly-1",
    labels: { "cnpg.io/scheduled-backup": "nightly", "cnpg.io/immediateBackup": immediate },
  },
  spec: { cluster: { name: "c" } },
  status: { phase },
});

describe("planScheduledBackup", () => {
  it("waits for the first time, and says when that is", () => {
    expect(planScheduledBackup(aSchedule(), observed(), now)).toMatchObject({
      kind: "note",
      status: { lastCheckTime: "2026-11-30T10:00:30Z", nextScheduleTime: "2026-11-30T11:00:00Z" },
      requeueAfterMs: 3_570_000,
      event: {
        type: "Normal",
        reason: "BackupSchedule",
        message: "Scheduled first backup by 2026-11-30 11:00:00 +0000 UTC",
      },
    });
  });

  it("finds its children by a label, also when its name is too long for one", () => {
    const long = "nightly-".repeat(31).slice(0, 246);
    const scheduled = aSchedule({ immediate: true });
    scheduled.metadata.name = long;
    const decision = planScheduledBackup(scheduled, observed(), now);
    if (decision.kind !== "create") throw new Error(decision.kind);
    const { name = "", labels } = decision.backup.metadata;
    expect(name.length).toBeLessThanOrEqual(253);
    expect(name).toMatch(/^nightly-.*-[0-9a-f]{8}-20261130100030$/);
    const label = labels?.["cnpg.io/scheduled-backup"] ?? "";
    expect(label).toMatch(/^(?=.{1,63}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?$/);
    const made = { ...decision.backup, status: { phase: "running" } };
    expect(planScheduledBackup(scheduled, observed({ backups: [made] }), now)).toMatchObject({ kind: "leave" });
    const other = { ...scheduled, metadata: { ...scheduled.metadata, name: `${long.slice(0, -1)}z` } };
    expect(planScheduledBackup(other, observed({ backups: [made] }), now).kind).toBe("create");
  });

  it("takes one at once when asked to, and only once", () => {
    const decision = planScheduledBackup(aSchedule({ immediate: true }), observed(), now);
    expect(decision).toMatchObject({
      kind: "create",
      backup: {
        metadata: {
          name: "nightly-20261130100030",
          labels: { "cnpg.io/immediateBackup": "true", "cnpg.io/cluster": "c" },
        },
        spec: { cluster: { name: "c" }, method: "plugin" },
      },
      events: [
        { message: "Scheduled immediate backup now: 2026-11-30 10:00:30 +0000 UTC" },
        { message: "Next backup scheduled by 2026-11-30 11:00:00 +0000 UTC" },
      ],
    });
    const taken = child("completed", "true");
    taken.metadata.creationTimestamp = "2026-11-30T10:00:10Z";
    expect(planScheduledBackup(aSchedule({ immediate: true }), observed({ backups: [taken] }), now)).toMatchObject({
      kind: "note",
      status: {
        lastCheckTime: "2026-11-30T10:00:30Z",
        lastScheduleTime: "2026-11-30T10:00:10Z",
        nextScheduleTime: "2026-11-30T11:00:00Z",
      },
    });
  });

  it("takes one for the oldest time that was missed and drops the others", () => {
    const due = aSchedule({}, { lastCheckTime: "2026-11-30T06:30:00Z" });
    expect(planScheduledBackup(due, observed(), now)).toMatchObject({
      kind: "create",
      backup: { metadata: { name: "nightly-20261130070000" } },
      status: {
        lastCheckTime: "2026-11-30T10:00:30Z",
        lastScheduleTime: "2026-11-30T07:00:00Z",
        nextScheduleTime: "2026-11-30T11:00:00Z",
      },
      refused: { lastCheckTime: "2026-11-30T10:00:30Z", nextScheduleTime: "2026-11-30T11:00:00Z" },
    });
  });

  it("waits for the backup before", () => {
    const due = aSchedule({}, { lastCheckTime: "2026-11-30T06:30:00Z" });
    const decision = planScheduledBackup(due, observed({ backups: [child("started")] }), now);
    expect(decision).toMatchObject({ kind: "leave", requeueAfterMs: 60_000 });
  });

  it("passes over what is due while it is suspended", () => {
    const due = aSchedule({ suspend: true }, { lastCheckTime: "2026-11-30T06:30:00Z" });
    expect(planScheduledBackup(due, observed(), now)).toMatchObject({
      kind: "note",
      status: { lastCheckTime: "2026-11-30T10:00:30Z" },
    });
    const resumed = aSchedule({}, { lastCheckTime: "2026-11-30T10:00:30Z" });
    expect(planScheduledBackup(resumed, observed(), now)).toMatchObject({ requeueAfterMs: 3_570_000 });
  });

  it("passes over what is due while the cluster is hibernated, and says so; what was never due waits", () => {
    const asleep = { ...cluster, metadata: { ...cluster.metadata, annotations: { "cnpg.io/hibernation": "on" } } };
    const plan = (spec: object, status?: ScheduledBackup["status"]) =>
      planScheduledBackup(aSchedule(spec, status), observed({ cluster: asleep }), now);
    expect(plan({}, { lastCheckTime: "2026-11-30T06:30:00Z" })).toMatchObject({
      kind: "note",
      status: { lastCheckTime: "2026-11-30T10:00:30Z" },
      requeueAfterMs: 3_570_000,
      event: { type: "Normal", reason: "BackupSkipped", message: "No backup is made, as cluster c is hibernated" },
    });
    expect(plan({}, { lastCheckTime: "2026-11-30T10:00:10Z" })).toEqual({
      kind: "leave",
      requeueAfterMs: 3_570_000,
      because: "cluster c is hibernated",
    });
    expect(plan({ immediate: true })).toEqual({
      kind: "leave",
      requeueAfterMs: 60_000,
      because: "cluster c is hibernated",
    });
    const awake = { ...cluster, metadata: { ...cluster.metadata, annotations: { "cnpg.io/hibernation": "off" } } };
    expect(planScheduledBackup(aSchedule({ immediate: true }), observed({ cluster: awake }), now).kind).toBe("create");
  });

  it.each([
    ["none", undefined],
    ["self", { kind: "ScheduledBackup", name: "nightly", uid: "uid-s" }],
    ["cluster", { kind: "Cluster", name: "c", uid: "uid-c" }],
  ] as const)("gives backups the owner %s", (backupOwnerReference, owner) => {
    const decision = planScheduledBackup(aSchedule({ immediate: true, backupOwnerReference }), observed(), now);
    const references = decision.kind === "create" ? decision.backup.metadata.ownerReferences : "no backup";
    const reference = owner && { apiVersion: "postgresql.cnpg.io/v1", ...owner, controller: true };
    expect(references).toEqual(reference && [reference]);
  });

  it("tells of a schedule without a time, and of one that is none", () => {
    const never = planScheduledBackup(aSchedule({ schedule: "0 0 0 31 2 *" }), observed(), now);
    expect(never).toMatchObject({ kind: "leave", event: { reason: "NoSchedule" } });
    const invalid = planScheduledBackup(aSchedule(), observed({ invalid: "spec.schedule: wrong" }), now);
    expect(invalid).toMatchObject({ kind: "note", status: { error: "spec.schedule: wrong" } });
  });
});
