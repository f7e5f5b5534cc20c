import { afterEach, describe, expect, it } from "vitest";
import type { Backup } from "../../../src/api/generated/backup.ts";
import { BackupRecord } from "../../../src/instance/backup/backup-record.ts";
import { resources } from "../../../src/kube/resources.ts";
import { KubeError } from "../../../src/ports/kube-api.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createFakeKubeApi } from "../../support/fake-kube-api.ts";
import { captureLogs } from "../../support/log-capture.ts";

const clock = createFakeClock();
const kube = createFakeKubeApi({ clock });
const key = { namespace: "ns", name: "b" };
let stop = new AbortController();

afterEach(() => {
  stop.abort(new Error("the test ends"));
  stop = new AbortController();
  kube.intercept(undefined);
});

async function aRecord(status: Backup["status"]): Promise<BackupRecord> {
  await kube.delete(resources.backups, key).catch(() => undefined);
  const backup = kube.seed(resources.backups, {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Backup",
    metadata: { ...key },
    spec: { cluster: { name: "c" } },
    ...(status ? { status } : {}),
  } as Backup);
  const { logger } = captureLogs();
  return new BackupRecord(backup, { podName: "c-2", kube, clock, logger, events: { record: () => undefined } });
}

const setStatus = (status: object) =>
  kube.patch(resources.backups, key, { type: "merge", body: { status } }, { subresource: "status" });
const complete = (record: BackupRecord) => record.write((status) => ({ ...status, phase: "completed" }), stop.signal);
const phase = () => kube.peek(resources.backups, key)?.status?.phase;

describe("what a pod writes of its backup", () => {
  it("is written when the Backup is its own, or was started by hand", async () => {
    expect(await complete(await aRecord({ phase: "started", instanceID: { podName: "c-2" } }))).toBe(true);
    expect(phase()).toBe("completed");
    expect(await complete(await aRecord(undefined))).toBe(true);
  });

  it("is not written once the Backup is another pod's, over, another object or gone", async () => {
    expect(await complete(await aRecord({ phase: "started", instanceID: { podName: "c-1" } }))).toBe(false);
    expect(phase()).toBe("started");
    expect(await complete(await aRecord({ phase: "failed" }))).toBe(false);
    const old = await aRecord({ phase: "started" });
    await aRecord({ phase: "started" });
    expect(await complete(old)).toBe(false);
    await kube.delete(resources.backups, key);
    expect(await complete(old)).toBe(false);
  });

  it("is written in the end, however long the API server is away", async () => {
    const record = await aRecord({ phase: "started" });
    kube.intercept(() => ({ error: new KubeError("away", { kind: "unavailable", status: 0 }) }));
    const writing = complete(record);
    await clock.advance(120_000);
    expect(phase()).toBe("started");
    kube.intercept(undefined);
    await clock.advance(60_000);
    expect(await writing).toBe(true);
    expect(phase()).toBe("completed");
  });
});

describe("a backup under way", () => {
  it("hears that it was given to another pod, or failed by the operator", async () => {
    const moved = (await aRecord({ phase: "started", instanceID: { podName: "c-2" } })).untilTaken(stop.signal);
    await clock.advance(40_000);
    await setStatus({ instanceID: { podName: "c-1" } });
    await clock.advance(20_000);
    expect(await moved).toBe("the Backup was given to c-1");
    const failed = (await aRecord({ phase: "started" })).untilTaken(stop.signal);
    await setStatus({ phase: "failed", error: "no answer" });
    await clock.advance(20_000);
    expect(await failed).toBe("the Backup says failed: no answer");
  });

  it("goes on while the API server is away, and when the object is deleted", async () => {
    let ended = false;
    const watch = (await aRecord({ phase: "started" })).untilTaken(stop.signal).finally(() => {
      ended = true;
    });
    kube.intercept(() => ({ error: new KubeError("away", { kind: "unavailable", status: 0 }) }));
    await clock.advance(60_000);
    kube.intercept(undefined);
    await kube.delete(resources.backups, key);
    await clock.advance(60_000);
    expect(ended).toBe(false);
    stop.abort(new Error("done"));
    await expect(watch).rejects.toThrow("done");
  });
});
