import { parseCompression } from "../src/barman/compression.ts";
import { backupBench, restoreBench } from "./base/base-bench.ts";
import { replayBench } from "./base/replay-bench.ts";
import { createBench } from "./create.ts";
import { gapBenches } from "./gaps.ts";
import { memoryBench } from "./memory.ts";
import type { Bench } from "./report.ts";
import { walBench } from "./wal/wal-bench.ts";

const benches: Readonly<Record<string, Bench>> = {
  backup: backupBench,
  create: createBench,
  ...gapBenches,
  memory: memoryBench,
  replay: replayBench,
  restore: restoreBench,
  wal: walBench,
};

function usage(): string {
  const list = (inCluster: boolean) =>
    Object.entries(benches)
      .filter(([, bench]) => (bench.needsCluster ?? false) === inCluster)
      .map(([name, bench]) => `  ${name.padEnd(12)} ${bench.about}`)
      .join("\n");
  return `usage: npm run bench -- [--runs N] [--size-mb N] [--compressions A,B] NAME ...

Prints one JSON line for each figure: ours, the peer's, their ratio, and the goal where there is one.
  --runs N            pairs of ours and the peer's, of which the median counts (5)
  --size-mb N         megabytes of the database that backup and restore copy (2048)
  --compressions A,B  what backup, restore and wal measure, none for none (each has its own)

By themselves, against an S3 server and PostgreSQL that they start:
${list(false)}

On the local Kubernetes (npm start -- --no-quickstart):
${list(true)}
`;
}

/** Takes a list out of the arguments; empty when it is not there. */
function takeList(args: string[], flag: string): string[] {
  const at = args.indexOf(flag);
  return at < 0 ? [] : (args.splice(at, 2)[1] ?? "").split(",").filter((name) => name !== "");
}

/** Takes a whole number out of the arguments; not a number when it is none. */
function takeNumber(args: string[], flag: string, otherwise: number): number {
  const at = args.indexOf(flag);
  if (at < 0) return otherwise;
  const value = Number(args.splice(at, 2)[1]);
  return Number.isInteger(value) ? value : Number.NaN;
}

async function main(): Promise<number> {
  const args = process.argv.slice(2);
  const runs = takeNumber(args, "--runs", 5);
  const sizeMb = takeNumber(args, "--size-mb", 2048);
  const compressions = takeList(args, "--compressions");
  const badCompression = compressions.find((name) => name !== "none" && !parseCompression(name));
  if (args.includes("--help") || args.includes("-h")) {
    process.stdout.write(usage());
    return 0;
  }
  const unknown = args.filter((name) => !benches[name]);
  if (badCompression !== undefined) unknown.push(badCompression);
  if (args.length === 0 || unknown.length > 0 || !(runs >= 1) || !(sizeMb >= 1)) {
    process.stderr.write(unknown.length > 0 ? `unknown: ${unknown.join(", ")}\n${usage()}` : usage());
    return 2;
  }
  for (const name of args) await benches[name]?.run(runs, { sizeMb, compressions });
  return 0;
}

process.exitCode = await main();
