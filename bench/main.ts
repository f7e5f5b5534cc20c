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
  const lines = Object.entries(benches).map(([name, bench]) => `  ${name.padEnd(12)} ${bench.about}`);
  return `usage: npm run bench -- [--runs N] [--size-mb N] NAME ...\n\nNeeds the local Kubernetes (npm start -- --no-quickstart). Benches:\n${lines.join("\n")}\n`;
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
  const unknown = args.filter((name) => !benches[name]);
  if (args.length === 0 || unknown.length > 0 || !(runs >= 1) || !(sizeMb >= 1)) {
    process.stderr.write(unknown.length > 0 ? `unknown bench: ${unknown.join(", ")}\n${usage()}` : usage());
    return args.includes("--help") ? 0 : 2;
  }
  for (const name of args) await benches[name]?.run(runs, { sizeMb });
  return 0;
}

process.exitCode = await main();
