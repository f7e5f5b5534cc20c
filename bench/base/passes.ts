import { execFile } from "node:child_process";
import { mkdir, mkdtemp, open, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { promisify } from "node:util";
import { bundleProgram } from "../../images/bundle.ts";
import { cacheRoot } from "../../local/tools/cache.ts";
import type { CompressionName } from "../../src/barman/compression.ts";
import { serverKeys } from "../../src/barman/object-keys.ts";
import { listAll, type ObjectStore } from "../../src/ports/object-store.ts";
import type { BarmanTools } from "../../test/support/barman.ts";
import { endedChildrenCpu } from "../children-cpu.ts";
import type { EngineOrder, EngineOutcome } from "./engine-program.ts";
import type { BaseSource } from "./source.ts";

const run = promisify(execFile);

/** The bundle of the engine's program, run as the plugin's image runs its own. */
export async function compileEngine(folder: string): Promise<(order: EngineOrder) => Promise<EngineOutcome>> {
  const program = join(folder, "engine.cjs");
  await writeFile(program, await bundleProgram(join(import.meta.dirname, "engine-program.ts")));
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: "/",
    NODE_OPTIONS: "--max-semi-space-size=1",
    MALLOC_ARENA_MAX: "2",
    MALLOC_MMAP_THRESHOLD_: "131072",
    MALLOC_TRIM_THRESHOLD_: "131072",
  };
  return async (order) => {
    const { stdout } = await run(process.execPath, ["--no-maglev", program, JSON.stringify(order)], {
      env,
      maxBuffer: 1 << 20,
    });
    return JSON.parse(stdout) as EngineOutcome;
  };
}

/** What some work took. */
export interface Cost {
  /** The start of its process included. */
  seconds: number;
  /** Processor time of the processes that were started for it; those of the store and of PostgreSQL are not. */
  cpuSeconds: number;
}

/** Measures work that is done by processes of its own. */
export async function costOf<T>(work: () => Promise<T>): Promise<[Cost, T]> {
  const before = await endedChildrenCpu();
  const [took, result] = await seconds(work);
  return [{ seconds: took, cpuSeconds: (await endedChildrenCpu()) - before }, result];
}

/** Seconds of some work. */
export async function seconds<T>(work: () => Promise<T>): Promise<[number, T]> {
  const started = performance.now();
  const result = await work();
  return [(performance.now() - started) / 1000, result];
}

/** A backup by Barman's tool with its defaults. */
export async function backupByBarman(
  barman: BarmanTools,
  source: BaseSource,
  destination: readonly string[],
  name: string,
  compression: CompressionName | undefined,
): Promise<Cost> {
  const { socketDir, port } = source.server;
  const flags = compression === undefined ? [] : [`--${compression}`];
  const server = ["-h", socketDir, "-p", String(port), "-U", "postgres", "--immediate-checkpoint", "--name", name];
  const [cost, result] = await costOf(() => barman.run("backup", [...flags, ...server, ...destination]));
  if (result.code !== 0) throw new Error(`barman-cloud-backup ended with ${result.code}: ${result.stderr}`);
  return cost;
}

/** A restore by Barman's tool into a new folder. */
export async function restoreByBarman(
  barman: BarmanTools,
  destination: readonly string[],
  backup: string,
): Promise<Cost> {
  return inFolder(async (folder) => {
    const [cost, result] = await costOf(() => barman.run("restore", [...destination, backup, join(folder, "data")]));
    if (result.code !== 0) throw new Error(`barman-cloud-restore ended with ${result.code}: ${result.stderr}`);
    return cost;
  });
}

/** A folder on the disk of the cache, removed in the end. */
export async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const root = join(cacheRoot(), "bench-base");
  await mkdir(root, { recursive: true });
  const folder = await mkdtemp(join(root, "run-"));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Bytes that a backup takes in the store. */
export async function storedBytes(store: ObjectStore, folder: string): Promise<number> {
  return (await listAll(store, folder)).objects.reduce((sum, { size }) => sum + size, 0);
}

/** Seconds that the store takes for so many bytes that are at hand, in parts as a backup sends them. */
export async function storeFloor(store: ObjectStore, bytes: number): Promise<number> {
  const piece = Buffer.alloc(1 << 20, "0123456789abcdef");
  async function* pieces() {
    for (let left = bytes; left > 0; left -= piece.length) yield piece.subarray(0, Math.min(left, piece.length));
  }
  const options = { partBytes: 5 * 1024 * 1024, concurrency: 2 };
  const [took] = await seconds(() => store.putStream("floor/put", pieces(), options));
  await store.remove(["floor/put"]);
  return took;
}

/** Seconds that the store takes to send all objects of a backup, one after another. */
export async function loadFloor(
  store: ObjectStore,
  { path, serverName }: BaseSource["place"],
  backupId: string,
): Promise<number> {
  const { objects } = await listAll(store, serverKeys(path, serverName).backupFolder(backupId));
  const [took] = await seconds(async () => {
    for (const { key } of objects) {
      const { chunks } = await store.get(key);
      for await (const _chunk of chunks);
    }
  });
  return took;
}

/** Seconds that the disk takes to read all files of a folder, as warm as they are. */
export async function readFloor(folder: string): Promise<number> {
  const buffer = Buffer.allocUnsafe(1 << 20);
  const [took] = await seconds(async () => {
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const file = await open(join(entry.parentPath, entry.name)).catch(() => undefined);
      if (!file) continue;
      while ((await file.read(buffer, 0, buffer.length)).bytesRead > 0);
      await file.close();
    }
  });
  return took;
}
