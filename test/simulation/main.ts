import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describeSweep, renderSimulation } from "./report.ts";
import { brokenRules } from "./rules.ts";
import { type Outcome, runScenario } from "./scenario.ts";
import { beyondAssumptions, catchBrokenPlan, type Sweep, sweep } from "./sweep.ts";

const usage = `usage: npm run simulate -- [--seeds N] [--from SEED] [--report] [--trace SEED] [--without "GUARD"]

Runs the plans of lease, right to write, promises and failover in simulated clusters, one per seed, and ends with 1 at
the first thing that must not happen, which it prints with all that led to it.

  --seeds N          how many (10000)
  --from SEED        the first (1)
  --report           writes docs/simulation/README.md as well, when nothing went wrong
  --trace SEED       prints what happens under one seed
  --without "GUARD"  with one guard less: ${Object.keys(brokenRules).join("; ")}
`;

function numberAfter(args: readonly string[], flag: string, otherwise: number): number {
  const at = args.indexOf(flag);
  const value = at < 0 ? otherwise : Number(args[at + 1]);
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`${flag} wants a number`);
  return value;
}

function rulesFrom(args: readonly string[]) {
  const at = args.indexOf("--without");
  const name = at < 0 ? "" : (args[at + 1] ?? "");
  const rules = at < 0 ? {} : brokenRules[name];
  if (!rules) throw new Error(`there is no guard "${name}"`);
  return rules;
}

function main(args: readonly string[]): number {
  if (args.includes("--help")) {
    process.stdout.write(usage);
    return 0;
  }
  const rules = rulesFrom(args);
  if (args.includes("--trace")) return show(runScenario(numberAfter(args, "--trace", 0), { rules, tracing: true }));
  const [seeds, from] = [numberAfter(args, "--seeds", 10_000), numberAfter(args, "--from", 1)];
  const started = Date.now();
  const swept = sweep(seeds, from, { rules });
  if (swept.broken) return show(runScenario(swept.broken.seed, { rules, tracing: true }));
  process.stdout.write(`${describeSweep(swept)} (${((Date.now() - started) / 1_000).toFixed(1)} s)\n`);
  for (const [fault, count] of swept.clusters) {
    process.stdout.write(`  in ${String(count).padStart(6)} of them: ${fault}\n`);
  }
  if (args.includes("--report")) writeReport(swept);
  return 0;
}

function writeReport(swept: Sweep): void {
  const path = join(import.meta.dirname, "../../docs/simulation/README.md");
  mkdirSync(dirname(path), { recursive: true });
  const report = {
    swept,
    beyond: Object.fromEntries(Object.entries(beyondAssumptions).map(([name, find]) => [name, find()])),
    caught: Object.fromEntries(Object.keys(brokenRules).map((name) => [name, catchBrokenPlan(name)])),
  };
  writeFileSync(path, renderSimulation(report));
}

function show({ seed, trace, violation }: Outcome): number {
  process.stdout.write(`${trace.join("\n")}\n\nseed ${seed}: ${violation ?? "nothing went wrong"}\n`);
  if (violation !== undefined) process.stdout.write(`again: npm run simulate -- --trace ${seed}\n`);
  return violation === undefined ? 0 : 1;
}

try {
  process.exitCode = main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n${usage}`);
  process.exitCode = 2;
}
