import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Backup } from "../../src/api/generated/backup.ts";
import { barmanTools } from "../support/barman.ts";
import { archivedBy, createObjectStore, localStore, plugin } from "./support/archive.ts";
import { createClusterIn, createNamespace, type TestCluster } from "./support/cluster.ts";
import { apply, getObject, kubectl } from "./support/kubectl.ts";
import { waitFor } from "./support/wait.ts";

describe("a cluster that the plugin archives", () => {
  let namespace: string;
  let source: TestCluster;
  /** Between the second row and the third. */
  let afterSecond: string;

  beforeAll(async () => {
    namespace = await createNamespace("backup");
    await createObjectStore(namespace);
    source = await createClusterIn(namespace, "source", { instances: 2, plugins: archivedBy() });
    await source.healthy(2);
  });
  afterAll(async () => {
    await kubectl(["delete", "namespace", namespace, "--wait=false", "--ignore-not-found"]);
  });

  const insert = async (id: number) => {
    await source.sql(await source.primary(), `insert into numbered values (${id}, clock_timestamp())`);
  };
  const rowsOf = async (cluster: TestCluster) => {
    const text = await cluster.sql(await cluster.primary(), "select id from numbered order by id");
    return text.split("\n").map(Number);
  };

  test("takes a base backup from a standby that Barman lists", async () => {
    await source.sql(await source.primary(), "create table numbered (id int, at timestamptz)");
    await insert(1);
    await apply({
      apiVersion: "postgresql.cnpg.io/v1",
      kind: "Backup",
      metadata: { namespace, name: "first" },
      spec: { cluster: { name: "source" }, method: "plugin", pluginConfiguration: { name: plugin } },
    });
    const backup = await waitFor(
      "the backup",
      180_000,
      async () => {
        const found = await getObject<Backup>(namespace, "backups.postgresql.cnpg.io", "first");
        if (found?.status?.phase === "failed") throw new Error(`the backup failed: ${found.status.error}`);
        return found?.status?.phase === "completed" ? found : undefined;
      },
      () => kubectl(["get", "backups.postgresql.cnpg.io", "first", "-n", namespace, "-o", "jsonpath={.status}"]),
    );
    expect(backup.status?.instanceID?.podName).not.toBe(await source.primary());
    const s3 = await localStore();
    const tools = await barmanTools(s3);
    const place = [`${s3.destinationPath}${namespace}`, "source"];
    const { stdout } = await tools.run("backup-list", ["--format", "json", ...place]);
    const listed = JSON.parse(stdout) as { backups_list: { backup_id: string; status: string }[] };
    expect(listed.backups_list).toMatchObject([{ backup_id: backup.status?.backupId, status: "DONE" }]);
  });

  test("says in its status what can be restored", async () => {
    const { status } = await source.get();
    const condition = (type: string) => status?.conditions?.find((it) => it.type === type)?.status;
    expect(condition("ContinuousArchiving")).toBe("True");
    expect(condition("LastBackupSucceeded")).toBe("True");
    const store = await getObject<{
      status?: { serverRecoveryWindow?: Record<string, { firstRecoverabilityPoint?: string }> };
    }>(namespace, "objectstores.barmancloud.cnpg.io", "archive");
    expect(store?.status?.serverRecoveryWindow?.["source"]?.firstRecoverabilityPoint).toMatch(/^\d{4}-/);
  });

  test("is restored to a point in time with exactly the rows of then", async () => {
    await insert(2);
    afterSecond = await source.sql(await source.primary(), "select clock_timestamp()");
    await insert(3);
    await source.sql(await source.primary(), "select pg_switch_wal()", "postgres");
    const restored = await createClusterIn(namespace, "then", {
      instances: 1,
      plugins: archivedBy(),
      bootstrap: { recovery: { source: "origin", recoveryTarget: { targetTime: afterSecond } } },
      externalClusters: [
        { name: "origin", plugin: { name: plugin, parameters: { barmanObjectName: "archive", serverName: "source" } } },
      ],
    });
    await restored.healthy(1, 300_000);
    expect(await rowsOf(restored)).toEqual([1, 2]);
    // It takes writes, on a timeline of its own.
    await restored.sql(await restored.primary(), "insert into numbered values (100, now())");
    expect(await rowsOf(restored)).toEqual([1, 2, 100]);
  });

  test("is restored to its last archived transaction, and the new cluster archives too", async () => {
    const restored = await createClusterIn(namespace, "latest", {
      instances: 1,
      plugins: archivedBy(),
      bootstrap: { recovery: { source: "origin" } },
      externalClusters: [
        { name: "origin", plugin: { name: plugin, parameters: { barmanObjectName: "archive", serverName: "source" } } },
      ],
    });
    await restored.healthy(1, 300_000);
    expect(await rowsOf(restored)).toEqual([1, 2, 3]);
    await restored.sql(await restored.primary(), "select pg_switch_wal()", "postgres");
    await waitFor("the new cluster's archive", 60_000, async () => {
      const conditions = (await restored.get()).status?.conditions;
      return conditions?.some((it) => it.type === "ContinuousArchiving" && it.status === "True");
    });
  });
});
