import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { waitFor } from "../../../local/process/wait.ts";
import { resources } from "../../../src/kube/resources.ts";
import { runHealthcheck } from "../../../src/plugin/barman-cloud/healthcheck.ts";
import { listAll } from "../../../src/ports/object-store.ts";
import { createTestAuthority } from "../../support/tls-files.ts";
import { segments } from "../../support/wal-folder.ts";
import { makeSegment } from "../../support/wal-segment.ts";
import { startFaultyS3 } from "../store/faulty-s3.ts";
import {
  bucket,
  namespace,
  openSidecarLab,
  type RunningSidecar,
  type SidecarLab,
  startSidecar,
  writeKeys,
} from "./sidecar-lab.ts";

const [s1 = "", s2 = "", s3 = "", s4 = "", s5 = ""] = segments(1, 5);
let lab: SidecarLab;
let sidecar: RunningSidecar;
let serverName: string;
let count = 0;

beforeAll(async () => {
  lab = await openSidecarLab();
  await lab.useStore({ wal: { compression: "gzip", maxParallel: 2 } });
}, 240_000);
afterAll(() => lab?.stop());
beforeEach(async () => {
  serverName = `server-${++count}`;
  sidecar = await startSidecar(lab);
});
afterEach(() => sidecar.stop());

const clusterOf = (status?: Parameters<SidecarLab["cluster"]>[1], annotations?: Record<string, string>) => {
  const parameters = { barmanObjectName: "own", serverName };
  const plugins = [{ name: "barman-cloud.cloudnative-pg.io", isWALArchiver: true, parameters }];
  const cluster = lab.cluster({ plugins }, status);
  return { ...cluster, metadata: { ...cluster.metadata, ...(annotations ? { annotations } : {}) } };
};
const archive = (path: string, extra: { checkEmptyWalArchive?: boolean } = {}, cluster = clusterOf()) =>
  sidecar.plugin.wal.archive({ cluster, sourceFileName: path, ...extra });
const restore = (name: string, mode: "recovery" | "rewind" = "recovery", cluster = clusterOf()) =>
  sidecar.plugin.wal.restore({
    cluster,
    sourceWalName: name,
    destinationFileName: join(sidecar.folder, name),
    mode,
  });
const objects = async () => {
  const { objects: found } = await listAll(lab.store, `clusters/${serverName}/`);
  return found.map(({ key }) => key.slice(key.lastIndexOf("/") + 1)).sort();
};

describe("the sidecar of an instance", () => {
  test("serves what an instance needs, and its probe says so", async () => {
    expect([...sidecar.plugin.capabilities.wal].sort()).toEqual([
      "TYPE_ARCHIVE_WAL",
      "TYPE_RESTORE_WAL",
      "TYPE_SET_FIRST_REQUIRED",
      "TYPE_STATUS",
    ]);
    expect(sidecar.plugin.capabilities.services).toEqual(["TYPE_WAL_SERVICE", "TYPE_BACKUP_SERVICE", "TYPE_METRICS"]);
    expect(await runHealthcheck(["unix"], sidecar.socketFolder)).toEqual({ code: 0, message: "" });
    expect(await runHealthcheck([], sidecar.socketFolder)).toMatchObject({ code: 125 });
    expect(await runHealthcheck(["unix"], join(sidecar.folder, "nowhere"))).toMatchObject({ code: 1 });
  });

  test("archives what Barman restores, ahead of the requests, and restores what it archived", async () => {
    const path = await sidecar.segment(s1);
    for (const name of [s2, s3, s4]) await sidecar.segment(name);
    await archive(path);
    await waitFor("the waiting segments are archived", async () => (await objects()).length === 4, {
      timeoutMs: 30_000,
    });
    for (const name of [s2, s3, s4]) await archive(join(sidecar.wal, name));
    expect(sidecar.logs.messages("info")).toEqual(
      expect.arrayContaining([
        "Executing barman-cloud-wal-archive",
        "Archived WAL file",
        "Pre-archived WAL file (parallel)",
        "WAL file already archived, skipping",
      ]),
    );
    const byBarman = join(sidecar.folder, "by-barman");
    const tool = await lab.barman.run("wal-restore", [`s3://${bucket}/clusters/`, serverName, s2, byBarman]);
    expect(tool).toMatchObject({ code: 0 });
    expect((await readFile(byBarman)).equals(makeSegment(s2))).toBe(true);

    for (const name of [s1, s2, s3, s4]) {
      await restore(name);
      expect((await sidecar.restored(name)).equals(makeSegment(name))).toBe(true);
    }
    expect(await sidecar.plugin.wal.status(clusterOf())).toMatchObject({ firstWal: s1, lastWal: s4 });
  });

  test("restores what Barman archived, and finishes quietly where the archive ends", async () => {
    const path = await sidecar.segment(s5, "barman");
    const tool = await lab.barman.run("wal-archive", ["--gzip", `s3://${bucket}/clusters/`, serverName, path]);
    expect(tool).toMatchObject({ code: 0 });
    await restore(s5);
    expect((await sidecar.restored(s5)).equals(makeSegment(s5, { seed: "barman" }))).toBe(true);

    await expect(restore("00000002.history")).rejects.toMatchObject({ kind: "notFound", status: "NOT_FOUND" });
    await expect(restore("00000001X")).rejects.toMatchObject({ status: "INVALID_ARGUMENT" });
    const standby = clusterOf({ currentPrimary: "orders-2" });
    await restore(s5, "recovery", standby);
    const next = "000000010000000000000006";
    await waitFor(
      "the end of the archive is known",
      async () => {
        const status = await restore(next, "recovery", standby).catch((error: { status: string }) => error.status);
        return status === "OUT_OF_RANGE";
      },
      { timeoutMs: 30_000 },
    );
    await expect(restore(next, "rewind", standby)).rejects.toMatchObject({ status: "NOT_FOUND" });
  });

  test("never overwrites: other bytes under an archived name are refused", async () => {
    await archive(await sidecar.segment(s1));
    await writeFile(join(sidecar.wal, s1), makeSegment(s1, { seed: "other" }));
    await expect(archive(join(sidecar.wal, s1))).rejects.toMatchObject({
      kind: "refused",
      status: "FAILED_PRECONDITION",
      message: expect.stringContaining("never overwritten"),
    });
  });

  test("keeps to the announced first segment, also after a restart", async () => {
    await sidecar.plugin.wal.setFirstRequired({ cluster: clusterOf(), firstRequiredWal: s3 });
    await archive(await sidecar.segment(s1));
    const status = await sidecar.plugin.wal.status(clusterOf());
    expect(status.additionalInformation).toMatchObject({ firstRequiredWal: s3 });
    expect(await readFile(join(sidecar.folder, "spool/first-required"), "utf8")).toBe(`${s3}\n`);
    await expect(
      sidecar.plugin.wal.setFirstRequired({ cluster: clusterOf(), firstRequiredWal: "nonsense" }),
    ).rejects.toMatchObject({ status: "INVALID_ARGUMENT" });
  });

  test("reports zero for what the ObjectStore's status does not tell, and else seconds", async () => {
    const metric = (suffix: string) => `barman_cloud_cloudnative_pg_io_${suffix}`;
    const defined = await sidecar.plugin.metrics.define(clusterOf());
    expect(defined.map(({ name, type }) => [name, type])).toEqual([
      [metric("first_recoverability_point"), "gauge"],
      [metric("last_available_backup_timestamp"), "gauge"],
      [metric("last_failed_backup_timestamp"), "gauge"],
    ]);
    expect((await sidecar.plugin.metrics.collect(clusterOf())).map(({ value }) => value)).toEqual([0, 0, 0]);
  });
});

describe("a first archive", () => {
  const marker = () => join(sidecar.folder, "pgdata/.check-empty-wal-archive");

  test("must be empty while the marker is there, unless the user says otherwise; then the marker goes", async () => {
    await archive(await sidecar.segment(s1));
    await sidecar.stop();
    sidecar = await startSidecar(lab);
    await writeFile(marker(), "");
    const path = await sidecar.segment(s2);
    await expect(archive(path)).rejects.toMatchObject({
      kind: "refused",
      message: expect.stringMatching(/Expected empty archive, found .*000000010000000000000001/),
    });
    expect(existsSync(marker())).toBe(true);
    await expect(archive(path, { checkEmptyWalArchive: true })).rejects.toMatchObject({ kind: "refused" });
    await archive(path, {}, clusterOf(undefined, { "cnpg.io/skipEmptyWalArchiveCheck": "enabled" }));
    expect(existsSync(marker())).toBe(false);
  });

  test("is let in when it is empty, and the request may decide alone", async () => {
    await writeFile(marker(), "");
    await archive(await sidecar.segment(s1), { checkEmptyWalArchive: true });
    expect(existsSync(marker())).toBe(false);
    expect(sidecar.logs.messages("info")).toContain("Checking backup destination with barman-cloud-wal-archive");
  });
});

describe("what is amiss with the store", () => {
  test("wrong credentials are told, may be tried again, and are replaced without a restart", async () => {
    const path = await sidecar.segment(s1);
    await writeKeys(lab.world, "keys", lab.s3.accessKey, "not the secret");
    try {
      await expect(archive(path)).rejects.toMatchObject({ kind: "unavailable", status: "UNAVAILABLE" });
      await expect(restore(s1)).rejects.toMatchObject({ kind: "unavailable" });
    } finally {
      await writeKeys(lab.world, "keys", lab.s3.accessKey, lab.s3.secretKey);
    }
    await archive(path);
    expect(await objects()).toEqual([`${s1}.gz`]);
  });

  test("a missing ObjectStore, a Secret without rights and one without the key are named", async () => {
    const path = await sidecar.segment(s1);
    const cluster = lab.cluster({
      plugins: [{ name: "barman-cloud.cloudnative-pg.io", parameters: { barmanObjectName: "nothing" } }],
    });
    await expect(archive(path, {}, cluster)).rejects.toMatchObject({
      status: "FAILED_PRECONDITION",
      message: expect.stringMatching(/ObjectStore shop\/nothing (may not be read yet|does not exist)/),
    });
    const bare = lab.cluster({ plugins: [{ name: "barman-cloud.cloudnative-pg.io" }] });
    await expect(archive(path, {}, bare)).rejects.toMatchObject({
      message: expect.stringContaining("barmanObjectName"),
    });
  });

  test("a Secret may bear the name of its ObjectStore", async () => {
    await writeKeys(lab.world, "own", lab.s3.accessKey, lab.s3.secretKey);
    const s3Credentials = { accessKeyId: { name: "own", key: "id" }, secretAccessKey: { name: "own", key: "secret" } };
    await lab.useStore({ wal: { compression: "gzip", maxParallel: 2 }, s3Credentials });
    await sidecar.stop();
    sidecar = await startSidecar(lab);
    await archive(await sidecar.segment(s1));
    expect(await objects()).toEqual([`${s1}.gz`]);
  });
});

test("an endpoint with a certificate of its own is reached by the mounted authority, which is missed by name", async () => {
  const authority = await createTestAuthority();
  const proxy = await startFaultyS3(lab.s3.port, await authority.issue("localhost"));
  try {
    const endpointCA = { name: "endpoint-ca", key: "ca.crt" };
    await lab.useStore({ endpointURL: proxy.endpoint, endpointCA, wal: { compression: "gzip" } });
    await sidecar.stop();
    sidecar = await startSidecar(lab);
    const path = await sidecar.segment(s1);
    await expect(archive(path)).rejects.toMatchObject({
      status: "FAILED_PRECONDITION",
      message: expect.stringMatching(/endpointCA, but .*own\/barman-ca.crt is not there/),
    });
    await mkdir(join(sidecar.folder, "certificates/own"), { recursive: true });
    await writeFile(join(sidecar.folder, "certificates/own/barman-ca.crt"), authority.ca);
    await archive(path);
    await restore(s1);
    expect(await sidecar.plugin.wal.status(clusterOf())).toMatchObject({ firstWal: s1, lastWal: s1 });
    expect(proxy.seen.some((request) => request.startsWith("PUT "))).toBe(true);
  } finally {
    await proxy.stop();
    await authority.remove();
  }
});

test("what an older release left in the spool is never served", async () => {
  await sidecar.stop();
  const spool = join(sidecar.folder, "spool");
  await mkdir(spool, { recursive: true });
  await writeFile(join(spool, s1), "");
  await writeFile(join(spool, "end-of-wal-stream"), "");
  await lab.useStore();
  sidecar = await startSidecar(lab, { env: { SPOOL_DIRECTORY: spool } });
  await expect(restore(s1)).rejects.toMatchObject({ status: "NOT_FOUND" });
  expect((await readdir(spool)).filter((name) => name !== "prefetched")).toEqual([]);
  expect(namespace).toBe(
    (await lab.world.api.get(resources.clusters, { namespace, name: "orders" })).metadata.namespace,
  );
});
