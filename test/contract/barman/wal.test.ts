import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { WalArchiver } from "../../../src/archive/wal-archiver.ts";
import { WalRestorer } from "../../../src/archive/wal-restorer.ts";
import type { CompressionName } from "../../../src/barman/compression.ts";
import type { ObjectStore } from "../../../src/ports/object-store.ts";
import { createS3Store } from "../../../src/store/s3-store.ts";
import { archivePorts } from "../../support/archive-ports.ts";
import { type BarmanTools, barmanTools } from "../../support/barman.ts";
import { type S3Server, startS3Server } from "../../support/s3-server.ts";
import { makeSegment } from "../../support/wal-segment.ts";

const bucket = "barman-wal";
const compressions: (CompressionName | undefined)[] = [undefined, "gzip", "zstd", "bzip2", "lz4", "snappy", "xz"];
/** Every size with one that is made in pieces, one that is a stream, and without any; the others do not look at the size. */
const allSizes: readonly (CompressionName | undefined)[] = [undefined, "gzip", "zstd"];

// Each run of Barman's tools takes seconds to start on a busy machine.
vi.setConfig({ testTimeout: 240_000 });

let server: S3Server;
let barman: BarmanTools;
let store: ObjectStore;
let folder: string;

beforeAll(async () => {
  server = await startS3Server();
  barman = await barmanTools(server);
  store = await createS3Store(server.options(bucket));
  await store.checkBucket({ create: true });
  folder = await mkdtemp(join(tmpdir(), "barman-wal-"));
});

afterAll(async () => {
  store?.close();
  await server?.stop();
  if (folder) await rm(folder, { recursive: true, force: true });
});

const ports = () => archivePorts(store);

async function walFolder(name: string): Promise<string> {
  const path = join(folder, name, "pg_wal");
  await mkdir(join(path, "archive_status"), { recursive: true });
  return path;
}

function archiver(serverName: string, wal: string, compression: CompressionName | undefined): WalArchiver {
  const options = {
    path: "deep/path",
    serverName,
    destination: `s3://${bucket}/deep/path`,
    walFolder: wal,
    recordFolder: join(wal, "../records"),
    compression,
  };
  return new WalArchiver(options, ports());
}

function restorer(serverName: string, segmentBytes?: number): WalRestorer {
  const spoolFolder = join(folder, serverName, "spool");
  return new WalRestorer({ path: "deep/path", serverName, spoolFolder, segmentBytes }, ports());
}

describe.each(compressions)("compression %s", (compression) => {
  const label = compression ?? "none";
  const segmentSizes = allSizes.includes(compression) ? [1 << 20, 16 << 20, 64 << 20] : [1 << 20];

  test.each(segmentSizes)("Barman restores a segment of %i bytes that we archived", async (segmentBytes) => {
    const serverName = `ours-${label}-${segmentBytes}`;
    const wal = await walFolder(serverName);
    const name = "000000010000000000000003";
    const bytes = makeSegment(name, { segmentBytes });
    await writeFile(join(wal, name), bytes);
    const engine = archiver(serverName, wal, compression);
    await engine.archive({ path: join(wal, name) });
    await engine.close();

    const target = join(wal, "restored");
    const result = await barman.run("wal-restore", [`s3://${bucket}/deep/path`, serverName, name, target]);
    expect(result).toMatchObject({ code: 0 });
    expect((await readFile(target)).equals(bytes)).toBe(true);
  });

  test("Barman restores history, partial and label files' neighbours that we archived", async () => {
    const serverName = `names-${label}`;
    const wal = await walFolder(serverName);
    const history = "1\t0/3000158\tno recovery target specified\n";
    const partial = makeSegment("000000010000000000000003.partial");
    await writeFile(join(wal, "00000002.history"), history);
    await writeFile(join(wal, "000000010000000000000003.partial"), partial);
    await writeFile(join(wal, "000000010000000000000002.00000028.backup"), "START WAL LOCATION: 0/2000028\n");
    const engine = archiver(serverName, wal, compression);
    for (const name of [
      "00000002.history",
      "000000010000000000000003.partial",
      "000000010000000000000002.00000028.backup",
    ]) {
      await engine.archive({ path: join(wal, name) });
    }
    await engine.close();

    const target = join(wal, "restored");
    const destination = [`s3://${bucket}/deep/path`, serverName];
    expect(await barman.run("wal-restore", [...destination, "00000002.history", target])).toMatchObject({ code: 0 });
    expect(await readFile(target, "utf8")).toBe(history);
    expect(await barman.run("wal-restore", [...destination, "000000010000000000000003", target])).toMatchObject({
      code: 0,
    });
    expect((await readFile(target)).equals(partial)).toBe(true);
    expect(await barman.run("check-wal-archive", destination)).toMatchObject({ code: 1 });
  });

  test.each(segmentSizes)("we restore a segment of %i bytes that Barman archived", async (segmentBytes) => {
    const serverName = `theirs-${label}-${segmentBytes}`;
    const wal = await walFolder(serverName);
    const name = "000000010000000A000000FE".slice(0, 16) + (segmentBytes === 64 << 20 ? "0000003E" : "000000FE");
    const bytes = makeSegment(name, { segmentBytes });
    await writeFile(join(wal, name), bytes);
    const flags = compression === undefined ? [] : [`--${compression}`];
    const archived = await barman.run("wal-archive", [
      ...flags,
      `s3://${bucket}/deep/path`,
      serverName,
      join(wal, name),
    ]);
    expect(archived).toMatchObject({ code: 0 });

    const engine = restorer(serverName);
    const destination = join(wal, "RECOVERYXLOG");
    await engine.restore({ name, destination });
    expect((await readFile(destination)).equals(bytes)).toBe(true);
    await engine.close();
  });

  test("what Barman archived is accepted when its bytes are ours, and refused when they are not", async () => {
    const serverName = `same-${label}`;
    const wal = await walFolder(serverName);
    const name = "000000010000000000000007";
    await writeFile(join(wal, name), makeSegment(name));
    const flags = compression === undefined ? [] : [`--${compression}`];
    await barman.run("wal-archive", [...flags, `s3://${bucket}/deep/path`, serverName, join(wal, name)]);

    // The other compression on purpose: the suffix differs, the segment does not.
    const engine = archiver(serverName, wal, compression === "gzip" ? "zstd" : "gzip");
    await engine.archive({ path: join(wal, name) });
    await writeFile(join(wal, name), makeSegment(name, { seed: "other" }));
    await expect(engine.archive({ path: join(wal, name) })).rejects.toMatchObject({ kind: "conflict" });
    await engine.close();
  });
});

test("Barman and we agree on what an empty archive is", async () => {
  const destination = [`s3://${bucket}/deep/path`, "empty"];
  expect(await barman.run("check-wal-archive", destination)).toMatchObject({ code: 0 });
  const wal = await walFolder("empty");
  const name = "000000010000000000000001";
  await writeFile(join(wal, name), makeSegment(name));
  const first = archiver("empty", wal, "gzip");
  await first.archive({ path: join(wal, name), checkEmpty: true });
  await first.close();
  expect(await barman.run("check-wal-archive", destination)).toMatchObject({ code: 1 });

  const other = await walFolder("empty-other");
  await writeFile(join(other, name), makeSegment(name, { seed: "other" }));
  const second = archiver("empty", other, "gzip");
  await expect(second.archive({ path: join(other, name), checkEmpty: true })).rejects.toMatchObject({
    kind: "conflict",
    message: expect.stringContaining("Expected empty archive"),
  });
  await second.close();
});

test("a complete file wins over a partial one of any suffix", async () => {
  const wal = await walFolder("partial");
  const name = "000000010000000000000004";
  const whole = makeSegment(name);
  await writeFile(join(wal, `${name}.partial`), makeSegment(name, { seed: "partial" }));
  await writeFile(join(wal, name), whole);
  for (const [file, flag] of [
    [`${name}.partial`, "--bzip2"],
    [`${name}.partial`, "--gzip"],
    [name, "--zstd"],
  ] as const) {
    expect(
      await barman.run("wal-archive", [flag, `s3://${bucket}/deep/path`, "partial", join(wal, file)]),
    ).toMatchObject({
      code: 0,
    });
  }
  const engine = restorer("partial");
  await engine.restore({ name, destination: join(wal, "out") });
  expect((await readFile(join(wal, "out"))).equals(whole)).toBe(true);
  await engine.close();
});

test("a random file under a WAL name travels both ways", async () => {
  const wal = await walFolder("noise");
  const name = "000000010000000000000009";
  const bytes = randomBytes(300_000);
  await writeFile(join(wal, name), bytes);
  const engine = archiver("noise", wal, "gzip");
  await engine.archive({ path: join(wal, name) });
  await engine.close();
  const back = restorer("noise");
  await back.restore({ name, destination: join(wal, "out") });
  expect((await readFile(join(wal, "out"))).equals(bytes)).toBe(true);
  await back.close();
});
