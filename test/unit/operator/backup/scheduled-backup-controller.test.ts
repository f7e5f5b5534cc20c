import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Backup } from "../../../../src/api/generated/backup.ts";
import type { ScheduledBackup } from "../../../../src/api/generated/scheduledbackup.ts";
import { resources } from "../../../../src/kube/resources.ts";
import { createScheduledBackupReconciler } from "../../../../src/operator/backup/scheduled-backup-controller.ts";
import { KubeError } from "../../../../src/ports/kube-api.ts";
import { createFakeClock, type FakeClock } from "../../../support/fake-clock.ts";
import { createFakeKubeApi, type FakeKubeApi } from "../../../support/fake-kube-api.ts";
import { type StartedStores, startStores } from "../started-stores.ts";

let clock: FakeClock;
let api: FakeKubeApi;
let events: string[];
let started: StartedStores;

beforeEach(async () => {
  clock = createFakeClock();
  api = createFakeKubeApi({ clock });
  started = await startStores(api, clock);
  events = [];
});

afterEach(() => started.stop());

const key = { namespace: "ns", name: "daily" };

async function schedule(spec: Partial<ScheduledBackup["spec"]>, status?: ScheduledBackup["status"]): Promise<void> {
  api.seed(resources.scheduledBackups, {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "ScheduledBackup",
    metadata: { ...key },
    spec: { schedule: "0 0 * * * *", cluster: { name: "c" }, method: "plugin", ...spec },
    ...(status ? { status } : {}),
  } as ScheduledBackup);
  await clock.settle();
}

/** One pass; what it fails with is the answer. */
async function pass(): Promise<unknown> {
  const reconcile = createScheduledBackupReconciler({
    api,
    stores: started.stores,
    events: { record: (_target, { reason }) => void events.push(reason) },
    clock,
    validate: () => null,
    timeZone: () => "UTC",
  });
  const outcome = await reconcile("ns/daily", started.signal).catch((error: unknown) => error);
  await clock.settle();
  return outcome;
}

const names = () => api.peekAll(resources.backups, "ns").map((it) => it.metadata.name);
const status = () => api.peek(resources.scheduledBackups, key)?.status;
const finish = async () => {
  for (const { metadata } of api.peekAll(resources.backups, "ns")) {
    const { namespace = "", name = "" } = metadata;
    const body = { status: { phase: "completed" } };
    await api.patch(resources.backups, { namespace, name }, { type: "merge", body }, { subresource: "status" });
  }
  await clock.settle();
};
/** Status patches fail before they are carried out. */
const loseStatus = () =>
  api.intercept(({ verb, subresource }) =>
    verb === "patch" && subresource === "status"
      ? { error: new KubeError("connection reset", { kind: "unavailable", status: 0 }) }
      : undefined,
  );
const hourAgo = () => `${new Date(clock.now() - 3_600_000).toISOString().slice(0, 19)}Z`;

describe("a pass that could not write down what it did", () => {
  it.each(["none", "self", "cluster"] as const)(
    "is made good by the next one (owner: %s)",
    async (backupOwnerReference) => {
      await schedule({ backupOwnerReference }, { lastCheckTime: hourAgo() });
      loseStatus();
      expect(await pass()).toBeInstanceOf(KubeError);
      expect(names()).toHaveLength(1);
      api.intercept(undefined);
      await finish();
      await pass();
      expect(names()).toHaveLength(1);
      expect(status()?.lastScheduleTime).toBeDefined();
      clock.setWallClock(Date.parse(status()?.nextScheduleTime ?? "") + 1_000);
      await pass();
      expect(names()).toHaveLength(2);
    },
  );

  it("finds the one that it took at once, although the time in its name has passed", async () => {
    await schedule({ immediate: true });
    loseStatus();
    expect(await pass()).toBeInstanceOf(KubeError);
    api.intercept(undefined);
    await finish();
    clock.setWallClock(clock.now() + 5_000);
    await pass();
    expect(names()).toHaveLength(1);
    expect(status()?.nextScheduleTime).toBeDefined();
  });
});

it("passes over a time whose Backup belongs to somebody else, and says so", async () => {
  await schedule({}, { lastCheckTime: hourAgo() });
  loseStatus();
  await pass();
  const [taken = ""] = names();
  await api.delete(resources.backups, { namespace: "ns", name: taken });
  api.seed(resources.backups, {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Backup",
    metadata: { namespace: "ns", name: taken },
    spec: { cluster: { name: "other" } },
  } as Backup);
  await clock.settle();
  api.intercept(undefined);
  events = [];
  await pass();
  expect(events).toContain("BackupAdoptionRefused");
  expect(names()).toEqual([taken]);
  expect(Date.parse(status()?.nextScheduleTime ?? "")).toBeGreaterThan(clock.now());
});
