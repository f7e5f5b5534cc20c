import { describe, expect, test } from "vitest";
import type { Backup } from "../../../../src/api/generated/backup.ts";
import { serverKeys } from "../../../../src/barman/object-keys.ts";
import { resources } from "../../../../src/kube/resources.ts";
import { createBackupService, type TakeBackup } from "../../../../src/plugin/barman-cloud/backup-service.ts";
import { CachedReader } from "../../../../src/plugin/barman-cloud/cached-reader.ts";
import type { StoreAccess } from "../../../../src/plugin/barman-cloud/store-access.ts";
import type { ObjectStore } from "../../../../src/ports/object-store.ts";
import { aBackup } from "../../../support/backup-catalog.ts";
import { anArchivedCluster, anObjectStore } from "../../../support/barman-cloud-objects.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { createFakeKubeApi, fault } from "../../../support/fake-kube-api.ts";
import { captureLogs } from "../../../support/log-capture.ts";

const key = { namespace: "shop", name: "own" };
const { id, info } = aBackup("20260101T000000", {
  end: "2026-01-01 00:10:00+00:00",
  beginWal: "000000010000000000000003",
  endWal: "000000010000000000000004",
  beginXlog: 0x3000028n,
  endXlog: 0x4000060n,
});

function setUp(takeBackup: TakeBackup, list: ObjectStore["list"]) {
  const clock = createFakeClock();
  const api = createFakeKubeApi({ clock });
  api.seed(resources.objectStores, anObjectStore("own"));
  const logs = captureLogs();
  let open = 0;
  const close = () => {
    open -= 1;
  };
  const store = { list, close } as unknown as ObjectStore;
  const access = {
    describe: async () => ({ serverName: "orders", keys: serverKeys("p", "orders") }),
    open: async () => {
      open += 1;
      return store;
    },
  } as unknown as StoreAccess;
  const reader = new CachedReader(api, clock);
  const deps = { access, api, reader, clock, logger: logs.logger, namespace: "shop", podName: "orders-2", takeBackup };
  const service = createBackupService(deps);
  const run = (uid: string, cluster = anArchivedCluster()) => {
    const backup = { metadata: { name: uid, namespace: "shop", uid } } as Backup;
    const context = { signal: new AbortController().signal, label: "Backup.Backup" };
    return service.backup({ cluster, backup, parameters: {} }, context);
  };
  const window = () => api.peek(resources.objectStores, key)?.status?.serverRecoveryWindow?.["orders"];
  return { api, clock, logs, run, window, open: () => open };
}

const empty: ObjectStore["list"] = async function* () {};
const broken: ObjectStore["list"] = () => ({
  [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new Error("the listing failed")) }),
});

describe("a backup", () => {
  test("is answered from its backup.info, even when the status cannot be brought up to date afterwards", async () => {
    const { run, logs, open } = setUp(async () => ({ id, info }), broken);
    expect(await run("a")).toMatchObject({
      backupId: id,
      backupName: "backup-20260101000000",
      startedAt: Date.parse("2026-01-01T00:00:00Z"),
      stoppedAt: Date.parse("2026-01-01T00:10:00Z"),
      beginWal: "000000010000000000000003",
      endWal: "000000010000000000000004",
      beginLsn: "0/3000028",
      endLsn: "0/4000060",
      instanceId: "orders-2",
      online: true,
      metadata: { timeline: "1", clusterUID: "uid-orders" },
    });
    expect(logs.messages("warning")).toEqual(["The recovery window could not be brought up to date"]);
    expect(open()).toBe(0);
  });

  test("that fails is noted through conflicts, and its own failure is what is told", async () => {
    const failure = new Error("the disk is gone");
    const { api, run, window, open } = setUp(() => Promise.reject(failure), empty);
    let conflicts = 2;
    api.intercept(({ verb }) => (verb === "update" && conflicts-- > 0 ? fault("conflict") : undefined));
    await expect(run("a")).rejects.toBe(failure);
    expect(window()).toEqual({ lastFailedBackupTime: "2026-01-01T00:00:00Z" });
    api.intercept(() => fault("unavailable"));
    await expect(run("b")).rejects.toBe(failure);
    expect(open()).toBe(0);
  });

  test("is one for one Backup, also for who asks after its end, and another for the next", async () => {
    let taken = 0;
    let finish = () => {};
    const take: TakeBackup = async () => {
      taken += 1;
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      return { id, info };
    };
    const { run, clock } = setUp(take, empty);
    const calls = [run("a"), run("a")];
    await clock.settle();
    finish();
    const [first] = await Promise.all(calls);
    expect(await run("a")).toEqual(first);
    expect(taken).toBe(1);
    const next = run("b");
    await clock.settle();
    finish();
    await next;
    expect(taken).toBe(2);
  });

  test("is not taken where WAL archiving is switched off: it could never be restored", async () => {
    const { run, window, open } = setUp(async () => ({ id, info }), empty);
    const cluster = anArchivedCluster();
    cluster.metadata.annotations = { "cnpg.io/skipWalArchiving": "enabled" };
    await expect(run("a", cluster)).rejects.toMatchObject({
      status: "FAILED_PRECONDITION",
      message: expect.stringContaining("cnpg.io/skipWalArchiving"),
    });
    expect([window(), open()]).toEqual([undefined, 0]);
  });

  test("that failed is taken again when it is asked for again", async () => {
    let taken = 0;
    const { run } = setUp(() => {
      taken += 1;
      return taken === 1 ? Promise.reject(new Error("the store is away")) : Promise.resolve({ id, info });
    }, empty);
    await expect(run("a")).rejects.toThrow("the store is away");
    expect(await run("a")).toMatchObject({ backupId: id });
  });
});
