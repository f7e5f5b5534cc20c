import type { CompressionName } from "../../src/barman/compression.ts";
import type { ObjectStore } from "../../src/ports/object-store.ts";
import { createS3Store } from "../../src/store/s3-store.ts";
import { type BarmanTools, barmanTools } from "../../test/support/barman.ts";
import { type S3Server, startS3Server } from "../../test/support/s3-server.ts";
import { type Bench, type BenchOptions, median, report } from "../report.ts";
import type { EngineOrder, EngineOutcome } from "./engine-program.ts";
import {
  backupByBarman,
  compileEngine,
  inFolder,
  readFloor,
  restoreByBarman,
  seconds,
  storedBytes,
  storeFloor,
} from "./passes.ts";
import { type BaseSource, startBaseSource } from "./source.ts";

const bucket = "bench-base";
const compressions: readonly (CompressionName | undefined)[] = ["gzip", "snappy", "lz4", undefined];

/** Base backups, beside Barman's tool in the same run on the same database. */
export const backupBench: Bench = {
  about:
    "base backup of a database (--size-mb, 2048): seconds, stored bytes and memory, beside barman-cloud-backup 3.19.1",
  run: (runs, options) => withLab(options, (lab) => forEach((compression) => measureBackups(lab, compression, runs))),
};

/** Base restores, beside Barman's tool in the same run on the same backups. */
export const restoreBench: Bench = {
  about: "base restore of a database (--size-mb, 2048): seconds and memory, beside barman-cloud-restore 3.19.1",
  run: (runs, options) => withLab(options, (lab) => forEach((compression) => measureRestores(lab, compression, runs))),
};

interface Lab {
  sizeMb: number;
  s3: S3Server;
  store: ObjectStore;
  barman: BarmanTools;
  source: BaseSource;
  destination: readonly string[];
  engine(order: Omit<EngineOrder, "s3" | "place">): Promise<EngineOutcome>;
}

async function forEach(measure: (compression: CompressionName | undefined) => Promise<void>): Promise<void> {
  for (const compression of compressions) await measure(compression);
}

async function withLab({ sizeMb }: BenchOptions, work: (lab: Lab) => Promise<void>): Promise<void> {
  const s3 = await startS3Server();
  const options = s3.options(bucket);
  const store = await createS3Store(options);
  try {
    await store.checkBucket({ create: true });
    const barman = await barmanTools(s3);
    const source = await startBaseSource(store, sizeMb);
    try {
      await inFolder(async (folder) => {
        const run = await compileEngine(folder);
        const { place } = source;
        const destination = [`s3://${bucket}/${place.path}`, place.serverName];
        const engine: Lab["engine"] = (order) => run({ s3: options, place, ...order });
        await work({ sizeMb, s3, store, barman, source, destination, engine });
      });
    } finally {
      await source.stop();
    }
  } finally {
    store.close();
    await s3.stop();
  }
}

async function backupByUs(lab: Lab, name: string, compression: CompressionName | undefined) {
  const { socketDir, port } = lab.source.server;
  const [took, outcome] = await seconds(() => lab.engine({ backup: { name, compression, socketDir, port } }));
  return { took, ...outcome };
}

async function dropBackup(lab: Lab, id: string): Promise<number> {
  const folder = `${lab.source.place.path}/${lab.source.place.serverName}/base/${id}/`;
  const bytes = await storedBytes(lab.store, folder);
  const keys: string[] = [];
  for await (const page of lab.store.list(folder)) keys.push(...page.objects.map(({ key }) => key));
  await lab.store.remove(keys);
  return bytes;
}

async function idOf(lab: Lab, name: string): Promise<string> {
  const shown = await lab.barman.run("backup-show", ["--format", "json", ...lab.destination, name]);
  return (JSON.parse(shown.stdout) as { cloud: { backup_id: string } }).cloud.backup_id;
}

async function measureBackups(lab: Lab, compression: CompressionName | undefined, runs: number): Promise<void> {
  const label = compression ?? "none";
  const ours: number[] = [];
  const peer: number[] = [];
  const peaks: number[] = [];
  let [ourBytes, peerBytes] = [0, 0];
  for (let run = 0; run < runs; run++) {
    const taken = await backupByUs(lab, `ours-${label}-${run}`, compression);
    ours.push(taken.took);
    peaks.push(taken.peakMb);
    ourBytes = await dropBackup(lab, taken.backupId);
    const name = `peer-${label}-${run}`;
    peer.push(await backupByBarman(lab.barman, lab.source, lab.destination, name, compression));
    peerBytes = await dropBackup(lab, await idOf(lab, name));
  }
  const floor = {
    storeFloorSeconds: await storeFloor(lab.store, ourBytes),
    readFloorSeconds: await readFloor(lab.source.server.dataDir),
  };
  const context = { ...facts(lab, label, runs), ...rounded(floor) };
  const figure = { bench: "backup", context };
  report({ ...figure, metric: "base backup", ours: median(ours), peer: median(peer), unit: "s" });
  report({ ...figure, metric: "stored", ours: ourBytes, peer: peerBytes, unit: "bytes" });
  report({
    ...figure,
    metric: "peak resident memory",
    ours: median(peaks),
    peer: memoryGoalMb,
    unit: "MB",
    context: { ...context, peer: "goal" },
  });
}

async function measureRestores(lab: Lab, compression: CompressionName | undefined, runs: number): Promise<void> {
  const label = compression ?? "none";
  const { backupId } = await backupByUs(lab, `source-${label}`, compression);
  const ours: number[] = [];
  const peer: number[] = [];
  const peaks: number[] = [];
  for (let run = 0; run < runs; run++) {
    await inFolder(async (folder) => {
      const restore = { backupId, dataFolder: `${folder}/data` };
      const [took, { peakMb }] = await seconds(() => lab.engine({ restore }));
      ours.push(took);
      peaks.push(peakMb);
    });
    peer.push(await restoreByBarman(lab.barman, lab.destination, backupId));
  }
  await dropBackup(lab, backupId);
  const context = facts(lab, label, runs);
  const figure = { bench: "restore", context };
  report({ ...figure, metric: "base restore", ours: median(ours), peer: median(peer), unit: "s" });
  report({
    ...figure,
    metric: "peak resident memory",
    ours: median(peaks),
    peer: memoryGoalMb,
    unit: "MB",
    context: { ...context, peer: "goal" },
  });
}

const memoryGoalMb = 160;

function facts(lab: Lab, compression: string, runs: number): Record<string, unknown> {
  return { compression, sizeMb: lab.sizeMb, runs, peer: "Barman 3.19.1, same run" };
}

function rounded(values: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, Math.round(value * 100) / 100]));
}
