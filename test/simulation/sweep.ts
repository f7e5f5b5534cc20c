import { type FaultClass, faultClasses } from "./fault-classes.ts";
import { brokenRules } from "./rules.ts";
import { isSkewedSeed, type Outcome, runScenario, type ScenarioOptions, skewedSeeds } from "./scenario.ts";

/** What the clusters of many seeds came to. */
export interface Sweep {
  from: number;
  seeds: number;
  /** The first one that broke a promise; the sweep ends there. */
  broken: Outcome | undefined;
  acknowledged: number;
  /** Longest time from the last fault until a cluster was well. */
  longestMs: number;
  /** In how many of the clusters something went wrong in this way. */
  clusters: ReadonlyMap<FaultClass, number>;
}

/** Runs one cluster for each seed, until one breaks a promise. */
export function sweep(seeds: number, from = 1, options: ScenarioOptions = {}): Sweep {
  const clusters = new Map<FaultClass, number>(faultClasses.map((fault) => [fault, 0]));
  let [acknowledged, longestMs] = [0, 0];
  let broken: Outcome | undefined;
  for (let seed = from; seed < from + seeds && !broken; seed += 1) {
    const outcome = runScenario(seed, options);
    if (outcome.violation !== undefined) broken = outcome;
    acknowledged += outcome.acknowledged;
    longestMs = Math.max(longestMs, outcome.healedMs);
    for (const fault of outcome.faults.keys()) clusters.set(fault, (clusters.get(fault) ?? 0) + 1);
  }
  return { from, seeds, broken, acknowledged, longestMs, clusters };
}

/** A seed under which something went wrong that must not. */
export interface Finding {
  seed: number;
  violation: string;
}

/** A guard whose absence shows under none of this many seeds would not be tested at all. */
const caughtWithin = 10_000;

/** The first seed that breaks a promise; `counts`: where something goes wrong that is asked about. */
function findSeed(
  options: ScenarioOptions,
  counts: (seed: number, faults: Outcome["faults"]) => boolean = () => true,
  step = { from: 1, by: 1 },
): Finding | undefined {
  for (let seed = step.from; seed <= caughtWithin; seed += step.by) {
    const { violation, faults } = runScenario(seed, options);
    if (violation !== undefined && counts(seed, faults)) return { seed, violation };
  }
  return undefined;
}

/** The first seed under which a plan with one guard less breaks a promise. */
export function catchBrokenPlan(name: string): Finding | undefined {
  return findSeed({ rules: brokenRules[name] ?? {} });
}

export const frozenTooLong = "a machine stands still, longer than a lease allows for" satisfies FaultClass;

/** What lies outside of the assumptions, each with the first seed under which two take writes then. */
export const beyondAssumptions = {
  [frozenTooLong]: () => findSeed({ strict: true }, (seed) => !isSkewedSeed(seed)),
  "clocks run more differently than is assumed": () =>
    findSeed({ strict: true }, (_, faults) => !faults.has(frozenTooLong), skewedSeeds),
} satisfies Partial<Record<FaultClass, () => Finding | undefined>>;
