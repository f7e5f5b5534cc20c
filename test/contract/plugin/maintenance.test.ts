import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { waitFor } from "../../../local/process/wait.ts";
import type { Backup } from "../../../src/api/generated/backup.ts";
import { formatBackupInfo } from "../../../src/barman/backup-info.ts";
import { formatBackupId, serverKeys } from "../../../src/barman/object-keys.ts";
import { resources } from "../../../src/kube/resources.ts";
import { listAll } from "../../../src/ports/object-store.ts";
import { formatWalSegment } from "../../../src/postgres/wal-name.ts";
import { aBackup } from "../../support/backup-catalog.ts";
import { barmanPlugin } from "../../support/barman-cloud-objects.ts";
import {
  bucket,
  namespace,
  openSidecarLab,
  type RunningSidecar,
  type SidecarLab,
  startSidecar,
} from "./sidecar-lab.ts";

const dayMs = 86_400_000;
const nowMs = Math.floor(Date.now() / 1000) * 1000;
const keys = serverKeys("clusters", "orders");
const segment = (number: number) => formatWalSegment({ timeline: 1, log: 0, segment: number });
const timeOf = (ms: number) => new Date(ms).toISOString().slice(0, 19);
const idOf = (daysAgo: number) => formatBackupId(nowMs - daysAgo * dayMs);
let lab: SidecarLab;
let sidecar: RunningSidecar | undefined;

beforeAll(async () => {
  lab = await openSidecarLab();
  await lab.useStore();
}, 240_000);
afterAll(async () => {
  await sidecar?.stop();
  await lab?.stop();
});

/** A backup of that many days ago, which ended an hour after it began, and the Backup that tells of it. */
async function stock(daysAgo: number, facts: { status?: "DONE" | "FAILED" } = {}): Promise<void> {
  const id = idOf(daysAgo);
  const endMs = nowMs - daysAgo * dayMs + 3_600_000;
  const wal = segment(100 - daysAgo);
  const { info } = aBackup(id, {
    end: `${timeOf(endMs).replace("T", " ")}+00:00`,
    beginWal: wal,
    endWal: wal,
    beginXlog: 0x5000028n,
    endXlog: 0x5000138n,
    systemid: "7364512345678901234",
    serverName: "cloud",
    version: 170002,
    ...facts,
  });
  await lab.store.put(keys.tar(id, "data", 0), [Buffer.from("tar")]);
  await lab.store.put(keys.backupInfo(id), [Buffer.from(formatBackupInfo(info))]);
  await lab.store.put(keys.wal(wal), [Buffer.from("wal")]);
}

async function report(name: string, daysAgo: number, metadata: Record<string, string> = {}): Promise<void> {
  const cluster = await lab.world.api.get(resources.clusters, { namespace, name: "orders" });
  const created = await lab.world.api.create(resources.backups, {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Backup",
    metadata: { namespace, name },
    spec: { cluster: { name: "orders" }, method: "plugin", pluginConfiguration: { name: barmanPlugin } },
  } satisfies Backup);
  const status = {
    phase: "completed" as const,
    method: "plugin",
    backupId: idOf(daysAgo),
    pluginMetadata: { clusterUID: cluster.metadata.uid ?? "", pluginName: barmanPlugin, ...metadata },
  };
  await lab.world.api.update(resources.backups, { ...created, status }, { subresource: "status" });
}

const windowNow = async () => {
  const store = await lab.world.api.get(resources.objectStores, { namespace, name: "own" });
  return store.status?.serverRecoveryWindow?.["orders"];
};
const becomePrimary = async (pod: string) => {
  const body = { status: { currentPrimary: pod } };
  await lab.world.api.patch(
    resources.clusters,
    { namespace, name: "orders" },
    { type: "merge", body },
    { subresource: "status" },
  );
};

describe("the retention worker", () => {
  test("waits while another pod is the primary, and begins when a request shows that this one is", async () => {
    await Promise.all([stock(30), stock(12), stock(9, { status: "FAILED" }), stock(5), stock(1)]);
    await Promise.all([report("gone", 30), report("kept", 5), report("foreign", 30, { clusterUID: "another" })]);
    const store = await lab.world.api.get(resources.objectStores, { namespace, name: "own" });
    await lab.world.api.update(resources.objectStores, { ...store, spec: { ...store.spec, retentionPolicy: "1w" } });
    const known = { firstRecoverabilityPoint: "2025-01-01T00:00:00Z" };
    const live = await lab.world.api.get(resources.objectStores, { namespace, name: "own" });
    const status = { serverRecoveryWindow: { dissolved: known, neighbour: known } };
    await lab.world.api.update(resources.objectStores, { ...live, status }, { subresource: "status" });
    await lab.store.put(serverKeys("clusters", "neighbour").wal(segment(1)), [Buffer.from("wal")]);
    await becomePrimary("orders-2");
    const running = await startSidecar(lab);
    sidecar = running;
    const skipped = "Skipping retention policy enforcement";
    await waitFor("the worker looked", async () => running.logs.messages().includes(skipped), { timeoutMs: 30_000 });
    expect(await windowNow()).toBeUndefined();
    // As instance managers announce it: by the Backups that there are before the policy is applied.
    await running.plugin.wal.setFirstRequired({ cluster: lab.cluster(), firstRequiredWal: segment(70) });

    await becomePrimary("orders-1");
    const told = async () => {
      await running.plugin.metrics.collect(lab.cluster());
      return (await windowNow()) !== undefined;
    };
    await waitFor("the window is told", told, { timeoutMs: 30_000 });
    expect(await windowNow()).toEqual({
      firstRecoverabilityPoint: `${timeOf(nowMs - 12 * dayMs + 3_600_000)}Z`,
      lastSuccessfulBackupTime: `${timeOf(nowMs - dayMs + 3_600_000)}Z`,
    });
  }, 90_000);

  test("forgets servers of which nothing is left, and only them", async () => {
    const servers = async () => {
      const store = await lab.world.api.get(resources.objectStores, { namespace, name: "own" });
      return Object.keys(store.status?.serverRecoveryWindow ?? {}).sort();
    };
    await waitFor("the server is forgotten", async () => !(await servers()).includes("dissolved"), {
      timeoutMs: 30_000,
    });
    expect(await servers()).toEqual(["neighbour", "orders"]);
  });

  test("keeps the backup that the window's first moment needs, and the WAL from its begin on", async () => {
    const { objects: base } = await listAll(lab.store, keys.basePrefix);
    const infos = base.map(({ key }) => key).filter((key) => key.endsWith("/backup.info"));
    expect(infos).toEqual([12, 9, 5, 1].map((days) => keys.backupInfo(idOf(days))));
    const { objects } = await listAll(lab.store, keys.walsPrefix);
    expect(objects.map(({ key }) => key.slice(-24))).toEqual([88, 91, 95, 99].map(segment));
    const list = await lab.barman.run("backup-list", ["--format", "json", `s3://${bucket}/clusters`, "orders"]);
    const listed = JSON.parse(list.stdout) as { backups_list: { backup_id: string }[] };
    expect(listed.backups_list.map(({ backup_id }) => backup_id).sort()).toEqual([12, 9, 5, 1].map(idOf));
  });

  test("removes Backups of this cluster whose data is gone, and no others", async () => {
    const left = await lab.world.api.list(resources.backups, { namespace });
    expect(left.map(({ metadata }) => metadata.name).sort()).toEqual(["foreign", "kept"]);
  });

  test("gives the metrics their values", async () => {
    const store = await lab.world.api.get(resources.objectStores, { namespace, name: "own" });
    const expected = Math.floor((nowMs - 12 * dayMs + 3_600_000) / 1000);
    expect(store.metadata.name).toBe("own");
    await waitFor(
      "the metrics follow",
      async () => (await sidecar?.plugin.metrics.collect(lab.cluster()))?.[0]?.value === expected,
      { timeoutMs: 30_000 },
    );
  });

  test("says on the Cluster that a policy cannot be applied, and tells the window all the same", async () => {
    await lab.store.put(keys.backupInfo("20200101T000000"), [Buffer.from("nonsense")]);
    await sidecar?.stop();
    sidecar = await startSidecar(lab);
    await waitFor(
      "the event is there",
      async () => {
        const events = await lab.world.api.list(resources.events, { namespace });
        return events.some(
          ({ reason, type, message, involvedObject }) =>
            reason === "RetentionPolicyFailed" &&
            type === "Warning" &&
            message === "Retention policy failed" &&
            involvedObject.kind === "Cluster" &&
            involvedObject.name === "orders",
        );
      },
      { timeoutMs: 30_000 },
    );
    expect((await windowNow())?.lastSuccessfulBackupTime).toBe(`${timeOf(nowMs - dayMs + 3_600_000)}Z`);
  });
});
