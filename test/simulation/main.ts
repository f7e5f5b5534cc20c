import { type FaultClass, faultClasses } from "./fault-classes.ts";
import { brokenRules } from "./rules.ts";
import { type Outcome, runScenario } from "./scenario.ts";

const usage = `usage: npm run simulate -- [--seeds N] [--from SEED] [--trace SEED] [--without "GUARD"]

Runs the plans of lease, right to write, promises and failover in simulated clusters, one per seed, and ends with 1 at
the first thing that must not happen, which it prints with all that led to it.

  --seeds N          how many (10000)
  --from SEED        the first (1)
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
  let [acknowledged, longestMs] = [0, 0];
  const clusters = new Map<FaultClass, number>();
  for (let seed = from; seed < from + seeds; seed += 1) {
    const outcome = runScenario(seed, { rules });
    if (outcome.violation !== undefined) return show(runScenario(seed, { rules, tracing: true }));
    acknowledged += outcome.acknowledged;
    longestMs = Math.max(longestMs, outcome.healedMs);
    for (const fault of outcome.faults.keys()) clusters.set(fault, (clusters.get(fault) ?? 0) + 1);
  }
  const seconds = ((Date.now() - started) / 1_000).toFixed(1);
  process.stdout.write(
    `${seeds} seeds from ${from} in ${seconds} s: ${acknowledged} writes acknowledged, nothing went wrong; well again at most ${longestMs / 1_000} s after the last fault\n`,
  );
  for (const fault of faultClasses) {
    process.stdout.write(`  in ${String(clusters.get(fault) ?? 0).padStart(6)} of them: ${fault}\n`);
  }
  return 0;
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
