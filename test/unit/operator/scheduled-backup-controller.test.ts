import { expect, test } from "vitest";
import type { ScheduledBackup } from "../../../src/api/generated/scheduledbackup.ts";
import { resources } from "../../../src/kube/resources.ts";
import {
  createScheduledBackupReconciler,
  type ScheduledBackupReconcilerOptions,
} from "../../../src/operator/backup/scheduled-backup-controller.ts";
import type { OperatorStores } from "../../../src/operator/stores.ts";
import type { BackupEvent } from "../../../src/plan/backup/plan-backup.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createFakeKubeApi, fault } from "../../support/fake-kube-api.ts";

const key = { namespace: "shop", name: "nightly" };

function setUp() {
  const clock = createFakeClock();
  const api = createFakeKubeApi({ clock });
  const scheduled = api.seed<ScheduledBackup>(resources.scheduledBackups, {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "ScheduledBackup",
    metadata: key,
    spec: { schedule: "0 0 0 1 1 *", immediate: true, cluster: { name: "db" } },
  });
  const events: BackupEvent[] = [];
  const stores = {
    scheduledBackups: { get: () => scheduled, observeWrite: () => undefined },
    backups: { list: () => [], observeWrite: () => undefined },
    clusters: { get: () => undefined },
  } as unknown as OperatorStores;
  const options: ScheduledBackupReconcilerOptions = {
    api,
    stores,
    events: { record: (_target, event) => void events.push(event) },
    clock,
    validate: () => null,
    timeZone: () => "UTC",
  };
  const run = () => createScheduledBackupReconciler(options)("shop/nightly", new AbortController().signal);
  const status = () => api.peek(resources.scheduledBackups, key)?.status;
  const name = `nightly-${new Date(clock.now()).toISOString().slice(0, 19).replaceAll(/\D/g, "")}`;
  return { api, events, run, status, name };
}

test("a Backup that cannot be made is told of, and no time is noted, so that it is tried again", async () => {
  const { api, events, run, status, name } = setUp();
  api.intercept(({ verb }) => (verb === "create" ? fault("forbidden") : undefined));
  await expect(run()).rejects.toMatchObject({ kind: "forbidden" });
  expect(events).toMatchObject([
    { type: "Warning", reason: "BackupCreation", message: expect.stringContaining(`${name} could not be created`) },
  ]);
  expect(status()).toBeUndefined();
});

test("a name that somebody else's Backup has is passed over: the schedule goes on, and nothing says that one was made", async () => {
  const { api, events, run, status, name } = setUp();
  const spec = { cluster: { name: "db" } };
  api.seed(resources.backups, {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Backup",
    metadata: { ...key, name },
    spec,
  });
  await run();
  expect(events.map(({ type, reason }) => [type, reason])).toEqual([["Warning", "BackupAdoptionRefused"]]);
  expect(Object.keys(status() ?? {}).sort()).toEqual(["lastCheckTime", "nextScheduleTime"]);
});
