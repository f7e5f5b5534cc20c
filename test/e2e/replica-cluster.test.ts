import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Cluster } from "../../src/api/generated/cluster.ts";
import { parsePromotionToken } from "../../src/postgres/promotion-token.ts";
import { archivedBy, createObjectStore, plugin } from "./support/archive.ts";
import { createClusterIn, createNamespace, type TestCluster } from "./support/cluster.ts";
import { kubectl } from "./support/kubectl.ts";
import { waitFor } from "./support/wait.ts";

type Spec = Partial<Cluster["spec"]>;

/** How another cluster of the namespace is reached: by streaming, and by its archive. */
function external(name: string) {
  return {
    name,
    connectionParameters: {
      host: `${name}-rw`,
      user: "streaming_replica",
      dbname: "postgres",
      sslmode: "verify-ca",
    },
    sslKey: { name: `${name}-replication`, key: "tls.key" },
    sslCert: { name: `${name}-replication`, key: "tls.crt" },
    sslRootCert: { name: `${name}-ca`, key: "ca.crt" },
    plugin: { name: plugin, parameters: { barmanObjectName: "archive", serverName: name } },
  };
}

describe("two clusters that take turns", () => {
  let namespace: string;
  let east: TestCluster;
  let west: TestCluster;
  const externalClusters = [external("east"), external("west")];
  const member = (source: string, bootstrap: Spec["bootstrap"] = {}): Spec => ({
    instances: 2,
    plugins: archivedBy(),
    replica: { primary: "east", source },
    externalClusters,
    bootstrap,
  });

  const patch = (cluster: TestCluster, replica: object) =>
    kubectl([
      ...["patch", "clusters.postgresql.cnpg.io", cluster.name, "-n", namespace, "--type=merge"],
      ...["-p", JSON.stringify({ spec: { replica } })],
    ]);
  const explain = () =>
    kubectl([
      "get",
      "clusters.postgresql.cnpg.io",
      "-n",
      namespace,
      "-o",
      "jsonpath={range .items[*]}{.status}{'\\n'}{end}",
    ]);
  const rows = async (cluster: TestCluster) =>
    cluster.sql(await cluster.primary(), "select count(*) from turns").catch(() => "");
  const follows = (cluster: TestCluster, count: number) =>
    waitFor(`${count} rows in ${cluster.name}`, 120_000, async () => (await rows(cluster)) === String(count), explain);

  /** Makes `next` the primary cluster in place of `last`, without a row lost. */
  async function handOver(last: TestCluster, next: TestCluster): Promise<void> {
    await patch(last, { primary: next.name, promotionToken: null });
    const token = await waitFor(
      `the demotion token of ${last.name}`,
      240_000,
      async () => {
        const { status } = await last.get();
        return status?.switchReplicaClusterStatus?.inProgress ? undefined : status?.demotionToken;
      },
      explain,
    );
    expect(parsePromotionToken(token)).not.toHaveProperty("error");
    await patch(next, { primary: next.name, promotionToken: token });
    await waitFor(
      `${next.name} promoted`,
      240_000,
      async () => (await next.get()).status?.lastPromotionToken === token,
      explain,
    );
    await Promise.all([next.healthy(2, 300_000), last.healthy(2, 300_000)]);
  }

  beforeAll(async () => {
    namespace = await createNamespace("turns");
    await createObjectStore(namespace);
    east = await createClusterIn(namespace, "east", member("west", { initdb: { database: "app", owner: "app" } }));
    await east.healthy(2);
    await east.sql(await east.primary(), "create table turns as select generate_series(1, 1000) as id");
  });
  afterAll(async () => {
    await kubectl(["delete", "namespace", namespace, "--wait=false", "--ignore-not-found"]);
  });

  test("the second follows the first, read-only", async () => {
    west = await createClusterIn(namespace, "west", member("east", { pg_basebackup: { source: "east" } }));
    await west.healthy(2, 300_000);
    await follows(west, 1000);
    await expect(west.sql(await west.primary(), "create table refused (id int)")).rejects.toThrow("read-only");
  });

  test("the second takes over with every row, and the first follows it", async () => {
    await east.sql(await east.primary(), "insert into turns select generate_series(1001, 2000)");
    await handOver(east, west);
    expect(await rows(west)).toBe("2000");
    await west.sql(await west.primary(), "insert into turns values (2001)");
    await follows(east, 2001);
    await expect(east.sql(await east.primary(), "create table refused (id int)")).rejects.toThrow("read-only");
  });

  test("the first takes its turn again", async () => {
    await handOver(west, east);
    await east.sql(await east.primary(), "insert into turns values (2002)");
    await follows(west, 2002);
    await waitFor("the third timeline", 60_000, async () => (await east.get()).status?.timelineID === 3, explain);
    expect((await east.get()).status).not.toHaveProperty("demotionToken");
  });
});
