import { link, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { cacheRoot } from "../../local/tools/cache.ts";
import type { ArchiveOptions } from "../../src/archive/archive-settings.ts";
import { readPieces } from "../../src/archive/object-hash.ts";
import { WalArchiver } from "../../src/archive/wal-archiver.ts";
import type { CompressionName } from "../../src/barman/compression.ts";
import { compressionSuffix } from "../../src/barman/compression.ts";
import { listAll, type ObjectStore } from "../../src/ports/object-store.ts";
import { createFiles } from "../../src/process/files.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { createBulkFiles } from "../../src/store/bulk-files.ts";
import { compressWal } from "../../src/store/codecs.ts";
import type { BarmanTools } from "../../test/support/barman.ts";
import { captureLogs } from "../../test/support/log-capture.ts";
import type { WalDataSet } from "./data-sets.ts";

/** One pass over some segments. Milliseconds. */
export interface Pass {
  totalMs: number;
  eachMs: number[];
  storedBytes: number;
}

export interface PassInput {
  set: WalDataSet;
  segments: readonly string[];
  compression: CompressionName;
  store: ObjectStore;
  /** Names the place in the bucket; a new one for each pass. */
  serverName: string;
}

/** Our archiver, asked for one segment after the other as PostgreSQL asks. */
export async function passOurs(
  input: PassInput,
  options: Partial<ArchiveOptions> & { lookAheadOn: boolean },
): Promise<Pass> {
  const { lookAheadOn, ...settings } = options;
  const root = await mkdtemp(join(cacheRoot(), "bench-wal", "run-"));
  const walFolder = join(root, "pg_wal");
  const status = join(walFolder, "archive_status");
  await mkdir(status, { recursive: true });
  for (const name of input.segments) {
    await link(join(input.set.folder, name), join(walFolder, name));
    await writeFile(join(status, `${name}.ready`), "");
  }
  const archiver = new WalArchiver(
    {
      path: "bench",
      serverName: input.serverName,
      destination: "bench",
      walFolder,
      recordFolder: join(root, "records"),
      compression: input.compression,
      ...settings,
    },
    {
      store: input.store,
      files: createFiles(),
      bulk: createBulkFiles(),
      clock: systemClock,
      logger: captureLogs().logger,
    },
  );
  try {
    const pass = await timed(input.segments, async (name) => {
      await archiver.archive({ path: join(walFolder, name), lookAhead: lookAheadOn });
      await rename(join(status, `${name}.ready`), join(status, `${name}.done`));
    });
    return { ...pass, storedBytes: await storedBytes(input.store, input.serverName) };
  } finally {
    await archiver.close();
    await rm(root, { recursive: true, force: true });
  }
}

/** The least that can be done: read, compress in one piece, upload, in this warm process, one after the other. */
export async function passFloor(input: PassInput): Promise<Pass> {
  const bulk = createBulkFiles();
  const pass = await timed(input.segments, async (name) => {
    const source = await bulk.open(join(input.set.folder, name));
    try {
      const chunks: Uint8Array[] = [];
      const pieces = readPieces(source, source.state.size);
      for await (const chunk of compressWal(pieces, input.compression, { size: source.state.size })) chunks.push(chunk);
      const key = `bench/${input.serverName}/wals/${name.slice(0, 16)}/${name}${compressionSuffix(input.compression)}`;
      await input.store.put(key, chunks);
    } finally {
      await source.close();
    }
  });
  return { ...pass, storedBytes: await storedBytes(input.store, input.serverName) };
}

/** Barman's tool, one process a segment, as the peer starts it. */
export async function passBarman(input: PassInput, barman: BarmanTools, bucket: string): Promise<Pass> {
  const pass = await timed(input.segments, async (name) => {
    const flags = [`--${input.compression}`, `s3://${bucket}/bench`, input.serverName, join(input.set.folder, name)];
    const result = await barman.run("wal-archive", flags);
    if (result.code !== 0) throw new Error(`barman-cloud-wal-archive ended with ${result.code}: ${result.stderr}`);
  });
  return { ...pass, storedBytes: await storedBytes(input.store, input.serverName) };
}

async function timed(
  names: readonly string[],
  work: (name: string) => Promise<void>,
): Promise<Omit<Pass, "storedBytes">> {
  const eachMs: number[] = [];
  const started = performance.now();
  for (const name of names) {
    const begin = performance.now();
    await work(name);
    eachMs.push(performance.now() - begin);
  }
  return { totalMs: performance.now() - started, eachMs };
}

async function storedBytes(store: ObjectStore, serverName: string): Promise<number> {
  const { objects } = await listAll(store, `bench/${serverName}/wals/`);
  return objects.reduce((sum, { size }) => sum + size, 0);
}
