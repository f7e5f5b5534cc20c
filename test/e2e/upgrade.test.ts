import { appendFile, cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildOperatorImage, operatorImage } from "../../images/archives.ts";
import { buildRuntime, readManifest } from "../../images/runtime.ts";
import { buildLauncher } from "../../launcher/build.ts";
import { loadImageArchive } from "../../local/cluster/load-image.ts";
import { hashManagerArchive, openManagerArchive } from "../../src/store/manager-archive.ts";
import { createCluster, operatorServes, type TestCluster } from "./support/cluster.ts";
import { getObject, kubectl } from "./support/kubectl.ts";
import { waitFor } from "./support/wait.ts";
import { startWriter } from "./support/writer.ts";

interface Pod {
  metadata: { uid: string };
  spec: { initContainers: { image: string }[] };
  status: { podIP?: string; containerStatuses?: { restartCount: number }[] };
}

const operator = "deployment/cnpg-controller-manager";
const nextImage = "localhost/cnpg-ts:next";
const instances = ["upgrade-1", "upgrade-2", "upgrade-3"];
let cluster: TestCluster;
let work: string;
/** Hashes of the instance managers of both releases. */
let hash: string;
let nextHash: string;

/** Makes another release available to the cluster: this checkout's with another program text. */
async function buildNextRelease(): Promise<void> {
  const runtime = await buildRuntime();
  const { version, arch, hash: built } = await readManifest(runtime);
  hash = built;
  const next = join(work, "runtime");
  await cp(runtime, next, { recursive: true });
  await appendFile(join(next, "manager.cjs"), "\n// the next release\n");
  const release = { version: `${version}-next`, arch };
  const packed = await openManagerArchive({ launcher: await buildLauncher(), runtimeFolder: next, release });
  nextHash = await hashManagerArchive(packed);
  await writeFile(join(next, "manifest.json"), `${JSON.stringify({ ...release, hash: nextHash })}\n`);
  const archive = join(work, "next.tar");
  await buildOperatorImage({ name: nextImage, runtime: next, archive }, () => undefined);
  await loadImageArchive(archive);
}

/** Rolls the operator itself; from then on it gives instances its own manager, in place or by new pods. */
async function runOperator(image: string, inPlace: boolean): Promise<void> {
  const container = { name: "manager", image, imagePullPolicy: "IfNotPresent" };
  const env = [
    { name: "OPERATOR_IMAGE_NAME", value: image },
    { name: "ENABLE_INSTANCE_MANAGER_INPLACE_UPDATES", value: String(inPlace) },
  ];
  const patch = { spec: { template: { spec: { containers: [{ ...container, env }] } } } };
  await kubectl(["patch", operator, "-n", "cnpg-system", "--type=strategic", "-p", JSON.stringify(patch)]);
  await kubectl(["rollout", "status", operator, "-n", "cnpg-system", "--timeout=300s"]);
  await operatorServes(cluster);
}

const pod = (name: string) => getObject<Pod>(cluster.namespace, "pod", name);
const shell = (name: string, script: string) =>
  kubectl(["exec", "-n", cluster.namespace, name, "-c", "postgres", "--", "bash", "-c", script]);

async function hashOf(name: string): Promise<string> {
  const answer = await shell(name, "/controller/manager instance status").catch(() => "{}");
  return String((JSON.parse(answer) as { executableHash?: string }).executableHash ?? "");
}

/** What must be the same after an upgrade in place. */
async function identityOf(name: string): Promise<object> {
  const { metadata, status } = (await pod(name)) ?? { metadata: { uid: "" }, status: {} };
  const postmaster = await shell(name, "head -1 $PGDATA/postmaster.pid; head -3 $PGDATA/postmaster.pid | tail -1");
  return { uid: metadata.uid, restarts: status.containerStatuses?.map((it) => it.restartCount), postmaster };
}

beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), "cnpg-ts-next-"));
  await buildNextRelease();
  cluster = await createCluster("upgrade", { instances: 3 });
  await cluster.healthy(3);
}, 900_000);

afterAll(async () => {
  if (cluster) await runOperator(operatorImage, false);
  await cluster?.remove();
  await rm(work, { recursive: true, force: true });
}, 600_000);

test("another operator release replaces the instance managers in place, and an open session never notices", async () => {
  const primary = await cluster.primary();
  for (const name of instances) expect(await hashOf(name)).toBe(hash);
  const before = await Promise.all(instances.map(identityOf));
  const writer = await startWriter(cluster, {
    address: (await pod(primary))?.status.podIP ?? "",
    oneSession: true,
  });
  await runOperator(nextImage, true);
  await waitFor("every instance with the next manager", 300_000, async () => {
    const hashes = await Promise.all(instances.map(hashOf));
    return hashes.every((it) => it === nextHash);
  });
  const { status } = await cluster.healthy(3);
  expect(status).toMatchObject({ onlineUpdateEnabled: true, cloudNativePGOperatorHash: nextHash });
  const seen = (await writer.acknowledged()).length;
  await waitFor("more rows of the session", 60_000, async () => (await writer.acknowledged()).length > seen + 50);
  expect(await writer.longestGap()).toBeLessThan(3);
  await writer.stop();
  expect(await cluster.primary()).toBe(primary);
  expect(await Promise.all(instances.map(identityOf))).toEqual(before);
  const events = await kubectl(["get", "events", "-n", cluster.namespace, "-o", "jsonpath={.items[*].message}"]);
  for (const name of instances) expect(events).toContain(`Instance manager has been upgraded on ${name}`);
}, 900_000);

test("a container that starts anew in the same pod has the manager that was sent", async () => {
  const primary = await cluster.primary();
  const name = instances.find((it) => it !== primary) ?? "";
  const restarts = (await pod(name))?.status.containerStatuses?.[0]?.restartCount ?? 0;
  await shell(name, "kill -TERM 1").catch(() => "");
  await waitFor("the container's restart", 120_000, async () => {
    return ((await pod(name))?.status.containerStatuses?.[0]?.restartCount ?? 0) > restarts;
  });
  await cluster.healthy(3);
  expect(await hashOf(name)).toBe(nextHash);
}, 400_000);

test("without in-place updates another release comes with new pods, the primary last, and keeps every row", async () => {
  const rows = await cluster.sql(await cluster.primary(), "select count(*) from writes");
  await runOperator(nextImage, false);
  await waitFor("every pod from the other image", 600_000, async () => {
    const pods = await Promise.all(instances.map(pod));
    return pods.every((it) => it?.spec.initContainers[0]?.image === nextImage);
  });
  await cluster.healthy(3);
  for (const name of instances) expect(await hashOf(name)).toBe(nextHash);
  expect(await cluster.sql(await cluster.primary(), "select count(*) from writes")).toBe(rows);
}, 900_000);
