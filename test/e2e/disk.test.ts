import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freezeVolume, killVolume, thawVolume } from "../../local/cluster/volume-faults.ts";
import { expandableStorageClass } from "../../local/csi/names.ts";
import { exitCodeDiskFull } from "../../src/api/constants.ts";
import { phases } from "../../src/api/phases.ts";
import { createCluster, type TestCluster } from "./support/cluster.ts";
import { getObject, kubectl } from "./support/kubectl.ts";
import { volumeHandle } from "./support/volumes.ts";
import { waitFor } from "./support/wait.ts";
import { startWriter, storedRows, type Writer } from "./support/writer.ts";

interface Pod {
  metadata: { name: string; uid: string };
  status: { containerStatuses?: ContainerStatus[] };
}

interface ContainerStatus {
  name: string;
  restartCount: number;
  state?: { terminated?: { exitCode: number } };
  lastState?: { terminated?: { exitCode: number } };
}

interface Claim {
  status: { capacity?: { storage?: string } };
}

const instances = ["disk-1", "disk-2", "disk-3"];

describe("volumes of a cluster of three that grow, fill, die and hang", () => {
  let cluster: TestCluster;
  const shell = (instance: string, script: string) =>
    kubectl(["exec", "-n", cluster.namespace, instance, "-c", "postgres", "--", "bash", "-c", script]);
  const pod = async (name: string) => {
    const found = await getObject<Pod>(cluster.namespace, "pod", name);
    if (!found) throw new Error(`pod ${name} is not there`);
    return found;
  };
  const postgresContainer = async (name: string) =>
    (await pod(name)).status.containerStatuses?.find((each) => each.name === "postgres");
  const grow = (size: string) =>
    kubectl([
      "patch",
      "clusters.postgresql.cnpg.io",
      cluster.name,
      "-n",
      cluster.namespace,
      "--type=merge",
      "-p",
      JSON.stringify({ spec: { storage: { size } } }),
    ]);
  const claimsHave = (size: string) =>
    waitFor(`volumes of ${size}`, 300_000, async () => {
      const claims = await Promise.all(instances.map((name) => getObject<Claim>(cluster.namespace, "pvc", name)));
      return claims.every((claim) => claim?.status.capacity?.storage === size);
    });
  const mebibytes = async (instance: string) =>
    Number((await shell(instance, "df --output=size -BM $PGDATA | tail -1")).trim().replace("M", ""));
  const handle = (instance: string) => volumeHandle(cluster.namespace, instance);
  /** Stops the writer once it writes again; every row that it was told of has to be there. */
  const expectNoRowLost = async (writer: Writer, fault: string) => {
    const seen = (await writer.acknowledged()).length;
    await waitFor("writes to go on", 120_000, async () => (await writer.acknowledged()).length > seen + 5);
    const acknowledged = await writer.acknowledged();
    console.log(`${fault}: longest time between two acknowledged rows ${(await writer.longestGap()).toFixed(1)} s`);
    await writer.stop();
    const rows = await storedRows(cluster);
    expect(acknowledged.filter(({ row }) => !rows.has(row))).toEqual([]);
  };
  const otherPrimary = (than: string) =>
    waitFor(`another primary than ${than}`, 180_000, async () => {
      const { currentPrimary, targetPrimary } = (await cluster.get()).status ?? {};
      return currentPrimary !== than && currentPrimary === targetPrimary ? currentPrimary : undefined;
    });

  beforeAll(async () => {
    cluster = await createCluster("disk", {
      instances: 3,
      storage: { size: "512Mi", storageClass: expandableStorageClass },
      postgresql: {
        parameters: { wal_keep_size: "32MB", min_wal_size: "32MB", max_wal_size: "64MB" },
        // An acknowledged row is on two disks, so one that dies takes none with it.
        synchronous: { method: "any", number: 1, dataDurability: "required" },
      },
    });
    await cluster.healthy(3, 300_000);
  });
  afterAll(async () => {
    await cluster?.remove();
  });

  test("grow while PostgreSQL runs on them", async () => {
    const before = await Promise.all(instances.map(pod));
    const smaller = await Promise.all(instances.map(mebibytes));
    await grow("640Mi");
    await claimsHave("640Mi");
    for (const [index, name] of instances.entries()) {
      expect(await mebibytes(name)).toBeGreaterThanOrEqual((smaller[index] ?? 0) + 120);
    }
    const { status } = await cluster.healthy(3);
    expect([...(status?.healthyPVC ?? [])].sort()).toEqual(instances);
    expect(status?.resizingPVC ?? []).toEqual([]);
    const after = await Promise.all(instances.map(pod));
    const identity = ({ metadata, status: { containerStatuses } }: Pod) => [
      metadata.uid,
      containerStatuses?.map(({ restartCount }) => restartCount),
    ];
    expect(after.map(identity)).toEqual(before.map(identity));
  });

  test("a full one stops PostgreSQL with its own exit code and no failover, until it has grown", async () => {
    const primary = await cluster.primary();
    const writer = await startWriter(cluster);
    await shell(
      primary,
      "free=$(df --output=avail -BM $PGDATA | tail -1 | tr -dc 0-9); fallocate -l $((free - 4))M $PGDATA/../filler",
    );
    // New segments need room that is not there.
    const fill = "select pg_switch_wal(); create table if not exists filler (id int); insert into filler values (1)";
    await waitFor("the phase of a full disk", 180_000, async () => {
      await cluster.sql(primary, fill).catch(() => undefined);
      return (await cluster.get()).status?.phase === phases.notEnoughDisk;
    });
    const { state, lastState } = (await postgresContainer(primary)) ?? {};
    expect((state?.terminated ?? lastState?.terminated)?.exitCode).toBe(exitCodeDiskFull);
    expect((await cluster.get()).status).toMatchObject({ targetPrimary: primary, currentPrimary: primary });
    await grow("1Gi");
    await claimsHave("1Gi");
    // The kubelet waits longer before each start of a container that ends again and again.
    await cluster.healthy(3, 400_000);
    expect(await cluster.primary()).toBe(primary);
    await expectNoRowLost(writer, "full disk");
    await shell(primary, "rm $PGDATA/../filler");
  });

  test("a primary whose disk dies is replaced, and no acknowledged row is lost", async () => {
    const primary = await cluster.primary();
    const writer = await startWriter(cluster);
    await killVolume(await handle(primary));
    await otherPrimary(primary);
    await expectNoRowLost(writer, "dead disk");
    // A new pod mounts the volume anew, as one does whose disk was repaired.
    await kubectl(["delete", "pod", primary, "-n", cluster.namespace, "--wait=false"]);
    await cluster.healthy(3, 300_000);
  });

  test("a primary whose disk hangs is replaced, and no acknowledged row is lost", async () => {
    const primary = await cluster.primary();
    const writer = await startWriter(cluster);
    const volume = await handle(primary);
    await freezeVolume(volume);
    try {
      await otherPrimary(primary);
      await expectNoRowLost(writer, "hung disk");
    } finally {
      await thawVolume(volume);
    }
    await cluster.healthy(3, 300_000);
  });
});
