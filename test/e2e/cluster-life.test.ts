import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { annotations, labels } from "../../src/api/labels.ts";
import { createCluster, type TestCluster } from "./support/cluster.ts";
import { getObject, kubectl } from "./support/kubectl.ts";
import { waitFor } from "./support/wait.ts";
import { startWriter, storedRows } from "./support/writer.ts";

/** One cluster of three lives through what its owners do to it; the order of the tests is its life. */
describe("a cluster of three", () => {
  let cluster: TestCluster;

  beforeAll(async () => {
    cluster = await createCluster("life", { instances: 3 });
    await cluster.healthy(3);
  });
  afterAll(async () => {
    await cluster?.remove();
  });

  test("is healthy, with one labelled primary and replicas that stream", async () => {
    const { status } = await cluster.get();
    expect(status?.instanceNames).toEqual(["life-1", "life-2", "life-3"]);
    expect(status?.conditions?.find((condition) => condition.type === "Ready")?.status).toBe("True");
    expect(status?.conditions?.find((condition) => condition.type === "ConsistentSystemID")?.status).toBe("True");
    const primaries = await kubectl([
      "get",
      "pods",
      "-n",
      cluster.namespace,
      "-l",
      `${labels.instanceRole}=primary`,
      "-o",
      "name",
    ]);
    expect(primaries.trim()).toBe(`pod/${status?.currentPrimary}`);
    const streaming = await cluster.sql(
      status?.currentPrimary ?? "",
      "select count(*) from pg_stat_replication where state = 'streaming'",
      "postgres",
    );
    expect(streaming).toBe("2");
  });

  test("shows a row written through the service on all instances", async () => {
    await cluster.sqlThroughService("life-2", "create table seen (id int); insert into seen values (42)");
    for (const instance of ["life-1", "life-2", "life-3"]) {
      const row = await waitFor(`row on ${instance}`, 20_000, async () => {
        const text = await cluster.sql(instance, "select id from seen");
        return text === "42" ? text : undefined;
      });
      expect(row).toBe("42");
    }
  });

  test("holds the primary lease with the voters written down", async () => {
    const lease = await getObject<{
      metadata: { annotations?: Record<string, string> };
      spec: { holderIdentity: string };
    }>(cluster.namespace, "lease", "life");
    expect(lease?.spec.holderIdentity).toBe(await cluster.primary());
    const voters = JSON.parse(lease?.metadata.annotations?.[annotations.leaseVoters] ?? "{}") as { voters?: string[] };
    expect(voters.voters).toContain(await cluster.primary());
  });

  test("switches over when a new target is written to its status", async () => {
    const before = await cluster.primary();
    const target = before === "life-2" ? "life-3" : "life-2";
    await cluster.switchOver(target);
    await cluster.healthy(3);
    expect(await cluster.sql(target, "select pg_is_in_recovery()", "postgres")).toBe("f");
    expect(await cluster.sql(before, "select pg_is_in_recovery()", "postgres")).toBe("t");
  });

  test("fails over when the primary pod is deleted, and keeps every acknowledged row", async () => {
    const writer = await startWriter(cluster);
    const before = await cluster.primary();
    await kubectl(["delete", "pod", before, "-n", cluster.namespace]);
    await waitFor("another primary", 90_000, async () => (await cluster.primary()) !== before);
    await cluster.healthy(3);
    const seen = (await writer.acknowledged()).length;
    await waitFor("writes after the failover", 30_000, async () => (await writer.acknowledged()).length > seen);
    const acknowledged = await writer.acknowledged();
    await writer.stop();
    const stored = await storedRows(cluster);
    expect(acknowledged.filter(({ row }) => !stored.has(row))).toEqual([]);
  });

  test("gives a deleted replica its pod back on the same volume", async () => {
    const primary = await cluster.primary();
    const replica = ["life-1", "life-2", "life-3"].find((name) => name !== primary) ?? "";
    const volume = await getObject<{ metadata: { uid: string } }>(cluster.namespace, "pvc", replica);
    await kubectl(["delete", "pod", replica, "-n", cluster.namespace]);
    await cluster.healthy(3);
    const after = await getObject<{ metadata: { uid: string } }>(cluster.namespace, "pvc", replica);
    expect(after?.metadata.uid).toBe(volume?.metadata.uid);
  });

  test("clones a replica anew when its pod and volume are gone", async () => {
    const primary = await cluster.primary();
    const replica = ["life-3", "life-2", "life-1"].find((name) => name !== primary) ?? "";
    const volume = await getObject<{ metadata: { uid: string } }>(cluster.namespace, "pvc", replica);
    await kubectl(["delete", "pvc", replica, "-n", cluster.namespace, "--wait=false"]);
    await kubectl(["delete", "pod", replica, "-n", cluster.namespace]);
    await waitFor("the old volume gone", 60_000, async () => {
      const current = await getObject<{ metadata: { uid: string } }>(cluster.namespace, "pvc", replica);
      return current?.metadata.uid !== volume?.metadata.uid;
    });
    await cluster.healthy(3);
    expect(await cluster.sql(replica, "select id from seen")).toBe("42");
  });

  test("scales down and up", async () => {
    await kubectl(["scale", "cluster", "life", "-n", cluster.namespace, "--replicas=2"]);
    await cluster.healthy(2);
    await kubectl(["scale", "cluster", "life", "-n", cluster.namespace, "--replicas=3"]);
    await cluster.healthy(3);
  });
});
