import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { annotations } from "../../src/api/labels.ts";
import { createCluster, operatorServes, type TestCluster } from "./support/cluster.ts";
import { freezeApiServer } from "./support/control-plane.ts";
import { getObject, kubectl } from "./support/kubectl.ts";
import { runtimePids, signalRuntime } from "./support/runtime-processes.ts";
import { waitFor } from "./support/wait.ts";
import { startWriter, storedRows } from "./support/writer.ts";

interface Pod {
  metadata: { uid: string };
  status: { podIP?: string; containerStatuses?: { restartCount: number; ready: boolean }[] };
}

describe("faults of a cluster of three", () => {
  let cluster: TestCluster;
  const shell = (instance: string, script: string) =>
    kubectl(["exec", "-n", cluster.namespace, instance, "-c", "postgres", "--", "bash", "-c", script]);
  const pod = (name: string) => getObject<Pod>(cluster.namespace, "pod", name);

  beforeAll(async () => {
    cluster = await createCluster("faults", { instances: 3 });
    await cluster.healthy(3);
  });
  afterAll(async () => {
    await cluster?.remove();
  });

  test("a killed postmaster comes back, and every acknowledged row with it", async () => {
    const writer = await startWriter(cluster);
    const primary = await cluster.primary();
    await shell(primary, "kill -9 $(head -1 $PGDATA/postmaster.pid)");
    const seen = (await writer.acknowledged()).length;
    await waitFor("writes after the crash", 60_000, async () => (await writer.acknowledged()).length > seen + 5);
    const acknowledged = await writer.acknowledged();
    await writer.stop();
    await cluster.healthy(3);
    const stored = await storedRows(cluster);
    expect(acknowledged.filter(({ row }) => !stored.has(row))).toEqual([]);
  });

  test("a killed runtime takes the running PostgreSQL over before the right to write ends", async () => {
    const primary = await cluster.primary();
    const before = await pod(primary);
    const writer = await startWriter(cluster, { address: before?.status.podIP ?? "", oneSession: true });
    const postmaster = await shell(primary, "head -1 $PGDATA/postmaster.pid");
    const runtime = await shell(primary, runtimePids);
    const seen = (await writer.acknowledged()).length;
    await shell(primary, signalRuntime("KILL"));
    await waitFor("status from the new runtime", 60_000, async () => {
      const answer = await shell(primary, "/controller/manager instance status").catch(() => "{}");
      return JSON.parse(answer).isPrimary === true;
    });
    await waitFor("more rows of the session", 60_000, async () => (await writer.acknowledged()).length > seen + 50);
    expect(await writer.longestGap()).toBeLessThan(5);
    await writer.stop();
    await cluster.healthy(3);
    expect(await shell(primary, runtimePids)).not.toBe(runtime);
    expect(await shell(primary, "head -1 $PGDATA/postmaster.pid")).toBe(postmaster);
    expect(await cluster.primary()).toBe(primary);
    expect((await pod(primary))?.metadata.uid).toBe(before?.metadata.uid);
  });

  test("two pods lost at once come back", async () => {
    const primary = await cluster.primary();
    const replica = ["faults-1", "faults-2", "faults-3"].find((name) => name !== primary) ?? "";
    await kubectl(["delete", "pod", primary, replica, "-n", cluster.namespace, "--force", "--grace-period=0"]);
    await waitFor(
      "the pods to be seen as lost",
      30_000,
      async () => (await cluster.get()).status?.readyInstances !== 3,
    );
    await cluster.healthy(3);
  });

  test("the primary serves writes while the API server is away for a minute", async () => {
    const primary = await cluster.primary();
    // Past the Service: Kubernetes itself takes all pods of a node out of it that it heard nothing of for so long.
    const writer = await startWriter(cluster, { address: (await pod(primary))?.status.podIP ?? "", oneSession: true });
    await freezeApiServer(60_000);
    // The operator gave up its leadership meanwhile and starts anew.
    await operatorServes(cluster);
    await cluster.healthy(3);
    expect(await writer.longestGap()).toBeLessThan(3);
    await writer.stop();
    expect(await cluster.primary()).toBe(primary);
  });

  test("a fenced primary stops serving without a failover, and serves again when unfenced", async () => {
    const primary = await cluster.primary();
    const annotate = (value: string) =>
      kubectl(["annotate", "cluster", "faults", "-n", cluster.namespace, "--overwrite", value]);
    await annotate(`${annotations.fencedInstances}=["${primary}"]`);
    await waitFor("the fenced pod to be unready", 60_000, async () => {
      return (await pod(primary))?.status.containerStatuses?.[0]?.ready === false;
    });
    await expect(cluster.sql(primary, "select 1", "postgres")).rejects.toThrow();
    expect(await cluster.primary()).toBe(primary);
    await annotate(`${annotations.fencedInstances}-`);
    await cluster.healthy(3);
    expect(await cluster.sql(primary, "select pg_is_in_recovery()", "postgres")).toBe("f");
  });

  test("hibernates and wakes up with the same primary and data", async () => {
    const primary = await cluster.primary();
    await cluster.sql(primary, "create table kept (id int); insert into kept values (7)");
    const annotate = (value: string) =>
      kubectl([
        "annotate",
        "cluster",
        "faults",
        "-n",
        cluster.namespace,
        "--overwrite",
        `${annotations.hibernation}=${value}`,
      ]);
    await annotate("on");
    await waitFor("hibernation", 120_000, async () => {
      const { status } = await cluster.get();
      return status?.conditions?.some(({ type, status: value }) => type === "cnpg.io/hibernation" && value === "True");
    });
    const pods = await kubectl([
      "get",
      "pods",
      "-n",
      cluster.namespace,
      "-l",
      "cnpg.io/podRole=instance",
      "-o",
      "name",
    ]);
    expect(pods.trim()).toBe("");
    await annotate("off");
    await cluster.healthy(3);
    expect(await cluster.primary()).toBe(primary);
    expect(await cluster.sql(primary, "select id from kept")).toBe("7");
  });
});

describe("a cluster of one", () => {
  let cluster: TestCluster;
  const instance = "alone-1";
  const shell = (script: string) =>
    kubectl(["exec", "-n", cluster.namespace, instance, "-c", "postgres", "--", "bash", "-c", script]);
  const pod = () => getObject<Pod>(cluster.namespace, "pod", instance);

  beforeAll(async () => {
    // Without the runtime nothing answers the kubelet, which restarts the container after this time.
    cluster = await createCluster("alone", { instances: 1, livenessProbeTimeout: 300 });
    await cluster.healthy(1);
  });
  afterAll(async () => {
    await cluster?.remove();
  });

  // Only here: with voters beside it the right to write ends within ten seconds after the last renewal.
  test("PostgreSQL neither stops nor blocks during a minute without the runtime", async () => {
    const before = await pod();
    await cluster.sql(instance, "alter role app set log_statement = 'all'", "postgres");
    // Past the Service, which an unready pod leaves.
    const writer = await startWriter(cluster, { address: before?.status.podIP ?? "", oneSession: true });
    const postmaster = await shell("head -1 $PGDATA/postmaster.pid");
    const archived = "select archived_count from pg_stat_archiver";
    // Without its program the runtime can't come back; the launcher goes on trying.
    await shell(`mv /controller/runtime/manager.cjs /controller/runtime/away; ${signalRuntime("KILL")}`);
    const started = (await writer.acknowledged()).length;
    await new Promise((resolve) => setTimeout(resolve, 60_000));
    const during = (await writer.acknowledged()).length;
    expect(during - started).toBeGreaterThan(500);
    expect((await pod())?.status.containerStatuses?.[0]?.ready).toBe(false);
    await cluster.sql(instance, "select pg_switch_wal()", "postgres");
    const archivedBefore = Number(await cluster.sql(instance, archived, "postgres"));
    await shell("mv /controller/runtime/away /controller/runtime/manager.cjs");
    await waitFor("status from the new runtime", 60_000, async () => {
      const answer = await shell("/controller/manager instance status").catch(() => "{}");
      return JSON.parse(answer).isPrimary === true;
    });
    await waitFor("the waiting segment to be archived", 120_000, async () => {
      return Number(await cluster.sql(instance, archived, "postgres")) > archivedBefore;
    });
    expect(await writer.longestGap()).toBeLessThan(5);
    await writer.stop();
    await cluster.healthy(1);
    expect(await shell("head -1 $PGDATA/postmaster.pid")).toBe(postmaster);
    expect((await pod())?.metadata.uid).toBe(before?.metadata.uid);
    expect((await pod())?.status.containerStatuses?.[0]?.restartCount).toBe(
      before?.status.containerStatuses?.[0]?.restartCount,
    );
    // What PostgreSQL logged meanwhile is in the pod's log.
    const log = await kubectl(["logs", "-n", cluster.namespace, instance, "-c", "postgres", "--since=5m"]);
    expect(log).toContain("insert into writes values");
  });
});
