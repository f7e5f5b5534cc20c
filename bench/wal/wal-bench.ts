import { parseCompression } from "../../src/barman/compression.ts";
import { createS3Store } from "../../src/store/s3-store.ts";
import { barmanTools } from "../../test/support/barman.ts";
import { startS3Server } from "../../test/support/s3-server.ts";
import { type Bench, type Figure, type Goal, median, report } from "../report.ts";
import { dataSetNames, sample, walDataSet } from "./data-sets.ts";
import { type Pass, type PassInput, passBarman, passFloor, passOurs } from "./lanes.ts";

const bucket = "bench-wal";
const usual = ["gzip", "zstd"];
/** Segments of a pass: enough for look-ahead to show, few enough for the peer. */
const segmentsPerPass = Number(process.env["BENCH_WAL_SEGMENTS"] ?? 10);

/** Archiving WAL, beside Barman's tool in the same run on the same segments. */
export const walBench: Bench = {
  about: "WAL archiving: segments a second, stored bytes and latency, beside barman-cloud-wal-archive 3.19.1",
  async run(runs, options) {
    const compressions = options.compressions.length > 0 ? options.compressions : usual;
    const sets = [];
    for (const name of dataSetNames) sets.push(await walDataSet(name));
    const server = await startS3Server();
    const store = await createS3Store(server.options(bucket));
    try {
      await store.checkBucket({ create: true });
      const barman = await barmanTools(server);
      for (const set of sets) {
        for (const name of compressions) {
          const compression = parseCompression(name);
          if (compression === undefined) continue;
          const segments = sample(set, segmentsPerPass);
          const ours: Pass[] = [];
          const lane: Pass[] = [];
          const floor: Pass[] = [];
          const peer: Pass[] = [];
          for (let run = 0; run < runs; run++) {
            const input = (kind: string): PassInput => {
              const serverName = `${set.name}-${compression}-${kind}-${run}`;
              return { set, segments, compression, store, serverName };
            };
            floor.push(await passFloor(input("floor")));
            ours.push(await passOurs(input("ours"), { lookAheadOn: true }));
            peer.push(await passBarman(input("peer"), barman, bucket));
            lane.push(await passOurs(input("lane"), { lookAheadOn: false, cores: 1 }));
          }
          const context = {
            dataSet: set.name,
            compression,
            segments: segments.length,
            runs,
            peer: "Barman 3.19.1, same run",
          };
          for (const figure of figures({ ours, lane, floor, peer }, context)) report(figure);
        }
      }
    } finally {
      store.close();
      await server.stop();
    }
  },
};

interface Passes {
  ours: readonly Pass[];
  lane: readonly Pass[];
  floor: readonly Pass[];
  peer: readonly Pass[];
}

function figures(passes: Passes, context: Record<string, unknown>): Figure[] {
  const rate = (pass: Pass) => (pass.eachMs.length * 1000) / pass.totalMs;
  const figure = (
    [metric, unit]: readonly [string, string],
    ours: number,
    peer: number,
    goal: Goal,
    more: Record<string, unknown> = {},
  ): Figure => {
    return { bench: "wal", metric, ours, peer, unit, goal, context: { ...context, ...more } };
  };
  const each = (list: readonly Pass[]) => list.flatMap((pass) => pass.eachMs);
  const stored = (list: readonly Pass[]) => median(list.map((pass) => pass.storedBytes));
  const times = context["compression"] === "zstd" ? 5 : 3;
  const laneMs = median(each(passes.lane));
  const [floorMs, floorP99Ms] = [median(each(passes.floor)), quantile(each(passes.floor), 0.99)];
  const [peerMs, peerP99Ms] = [median(each(passes.peer)), quantile(each(passes.peer), 0.99)];
  return [
    figure(["throughput", "segments/s"], median(passes.ours.map(rate)), median(passes.peer.map(rate)), {
      leastRatio: times,
    }),
    figure(["stored", "bytes"], stored(passes.ours), stored(passes.peer), { mostRatio: 1.05 }),
    figure(["one lane, median", "ms"], laneMs, peerMs, { most: round(floorMs + 20) }, { floorMs: round(floorMs) }),
    figure(
      ["look-ahead, p99", "ms"],
      quantile(each(passes.ours), 0.99),
      peerP99Ms,
      { most: round(floorP99Ms + 150) },
      { floorP99Ms: round(floorP99Ms) },
    ),
  ];
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
