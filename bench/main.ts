import { createBench } from "./create.ts";
import { gapBenches } from "./gaps.ts";
import { memoryBench } from "./memory.ts";
import type { Bench } from "./report.ts";
import { walBench } from "./wal/wal-bench.ts";

const benches: Readonly<Record<string, Bench>> = {
  create: createBench,
  ...gapBenches,
  memory: memoryBench,
  wal: walBench,
};

function usage(): string {
  const lines = Object.entries(benches).map(([name, bench]) => `  ${name.padEnd(12)} ${bench.about}`);
  return `usage: npm run bench -- [--runs N] NAME ...\n\nNeeds the local Kubernetes (npm start -- --no-quickstart). Benches:\n${lines.join("\n")}\n`;
}

async function main(): Promise<number> {
  const args = process.argv.slice(2);
  const at = args.indexOf("--runs");
  const runs = at < 0 ? 5 : Number(args.splice(at, 2)[1]);
  const unknown = args.filter((name) => !benches[name]);
  if (args.length === 0 || unknown.length > 0 || !Number.isInteger(runs) || runs < 1) {
    process.stderr.write(unknown.length > 0 ? `unknown bench: ${unknown.join(", ")}\n${usage()}` : usage());
    return args.includes("--help") ? 0 : 2;
  }
  for (const name of args) await benches[name]?.run(runs);
  return 0;
}

process.exitCode = await main();
