import { type CompressionName, parseCompression } from "../../src/barman/compression.ts";
import type { ObjectStore } from "../../src/ports/object-store.ts";
import { createS3Store } from "../../src/store/s3-store.ts";
import { type BarmanTools, barmanTools } from "../../test/support/barman.ts";
import { type S3Server, startS3Server } from "../../test/support/s3-server.ts";
import { type Bench, type BenchOptions, type Figure, type Goal, median, report } from "../report.ts";
import type { EngineOrder, EngineOutcome } from "./engine-program.ts";
import {
  backupByBarman,
  type Cost,
  compileEngine,
  costOf,
  inFolder,
  loadFloor,
  readFloor,
  restoreByBarman,
  storedBytes,
  storeFloor,
} from "./passes.ts";
import { type BaseSource, startBaseSource } from "./source.ts";

const bucket = "bench-base";
/** Without bzip2, which takes both sides minutes: it has to be asked for. */
const usual: readonly string[] = ["gzip", "snappy", "lz4", "none"];

/** Base backups, beside Barman's tool in the same run on the same database. */
export const backupBench: Bench = {
  about:
    "base backup of a database (--size-mb, 2048): seconds, stored bytes and memory, beside barman-cloud-backup 3.19.1",
  run: (runs, options) => withLab(options, (lab, compression) => measureBackups(lab, compression, runs)),
};

/** Base restores, beside Barman's tool in the same run on the same backups. */
export const restoreBench: Bench = {
  about: "base restore of a database (--size-mb, 2048): seconds and memory, beside barman-cloud-restore 3.19.1",
  run: (runs, options) => withLab(options, (lab, compression) => measureRestores(lab, compression, runs)),
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

async function withLab(
  { sizeMb, compressions }: BenchOptions,
  work: (lab: Lab, compression: CompressionName | undefined) => Promise<void>,
): Promise<void> {
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
        const lab: Lab = { sizeMb, s3, store, barman, source, destination, engine };
        for (const name of compressions.length > 0 ? compressions : usual) await work(lab, parseCompression(name));
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
  const [cost, outcome] = await costOf(() => lab.engine({ backup: { name, compression, socketDir, port } }));
  return { cost, ...outcome };
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
  const ours: Cost[] = [];
  const peer: Cost[] = [];
  const peaks: number[] = [];
  let [ourBytes, peerBytes] = [0, 0];
  for (let run = 0; run < runs; run++) {
    const taken = await backupByUs(lab, `ours-${label}-${run}`, compression);
    ours.push(taken.cost);
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
  const figure = { bench: "backup", context: { ...facts(lab, label, runs), ...rounded(floor) } };
  // Without compression the store is the bound, which `storeFloorSeconds` tells.
  tell({ ...figure, metric: "base backup" }, ours, peer, compression ? { mostRatio: 0.5 } : undefined);
  report({ ...figure, metric: "stored", ours: ourBytes, peer: peerBytes, unit: "bytes", goal: { mostRatio: 1.05 } });
  tellPeak(figure, peaks);
}

async function measureRestores(lab: Lab, compression: CompressionName | undefined, runs: number): Promise<void> {
  const label = compression ?? "none";
  const { backupId } = await backupByUs(lab, `source-${label}`, compression);
  const ours: Cost[] = [];
  const peer: Cost[] = [];
  const durable: Cost[] = [];
  const peaks: number[] = [];
  const restore = (sync: boolean) =>
    inFolder(async (folder) => {
      const dataFolder = `${folder}/data`;
      const [cost, { peakMb }] = await costOf(() => lab.engine({ restore: { backupId, dataFolder, sync } }));
      peaks.push(peakMb);
      return cost;
    });
  for (let run = 0; run < runs; run++) {
    ours.push(await restore(false));
    peer.push(await restoreByBarman(lab.barman, lab.destination, backupId));
    durable.push(await restore(true));
  }
  const floor = { loadFloorSeconds: await loadFloor(lab.store, lab.source.place, backupId) };
  await dropBackup(lab, backupId);
  const figure = { bench: "restore", context: { ...facts(lab, label, runs), ...rounded(floor) } };
  // Barman's tool leaves it to the server to make the files durable.
  tell({ ...figure, metric: "base restore" }, ours, peer, compression ? { mostRatio: 0.333 } : undefined);
  tell({ ...figure, metric: "base restore, ours made durable" }, durable, peer);
  tellPeak(figure, peaks);
}

/** By the clock, and by processor time, which says more on a machine that others work on. */
function tell(
  figure: Pick<Figure, "bench" | "metric" | "context">,
  ours: readonly Cost[],
  peer: readonly Cost[],
  goal?: Goal,
): void {
  const of = (list: readonly Cost[], kind: keyof Cost) => median(list.map((cost) => cost[kind]));
  const wall = { ours: of(ours, "seconds"), peer: of(peer, "seconds") };
  report({ ...figure, ...wall, unit: "s", ...(goal ? { goal } : {}) });
  const cpu = { ours: of(ours, "cpuSeconds"), peer: of(peer, "cpuSeconds") };
  report({ ...figure, ...cpu, metric: `${figure.metric}, processor time`, unit: "s" });
}

function tellPeak({ bench, context }: Pick<Figure, "bench" | "context">, peaks: readonly number[]): void {
  const metric = "peak resident memory";
  const figure = { bench, metric, ours: median(peaks), peer: memoryGoalMb, unit: "MB", goal: { most: memoryGoalMb } };
  report({ ...figure, context: { ...context, peer: "goal" } });
}

const memoryGoalMb = 160;

function facts(lab: Lab, compression: string, runs: number): Record<string, unknown> {
  return { compression, sizeMb: lab.sizeMb, runs, peer: "Barman 3.19.1, same run" };
}

function rounded(values: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, Math.round(value * 100) / 100]));
}
