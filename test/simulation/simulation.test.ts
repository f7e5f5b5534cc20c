import { describe, expect, test } from "vitest";
import { type FaultClass, faultClasses } from "./fault-classes.ts";
import { brokenRules } from "./rules.ts";
import { isSkewedSeed, type Outcome, runScenario, type ScenarioOptions, skewedSeeds } from "./scenario.ts";

/** `npm run simulate` looks at more; these are for every run of the tests. */
const seeds = 10_000;
/** A guard whose absence shows under none of this many seeds would not be tested at all. */
const caughtWithin = 6_000;

describe("simulated clusters under partitions, pauses, crashes, lost answers, old reads, lost writes and deleted leases", () => {
  test(`seeds 1 to ${seeds}: one primary at a time, nothing acknowledged is lost, well again in the end`, {
    timeout: 600_000,
  }, () => {
    let acknowledged = 0;
    const clusters = new Map<FaultClass, number>();
    for (let seed = 1; seed <= seeds; seed += 1) {
      const outcome = runScenario(seed);
      expect(outcome.violation, `npm run simulate -- --trace ${seed}`).toBeUndefined();
      acknowledged += outcome.acknowledged;
      for (const fault of outcome.faults.keys()) clusters.set(fault, (clusters.get(fault) ?? 0) + 1);
    }
    // Nor does one in which something never goes wrong tell anything about it.
    const rare = faultClasses.filter((fault) => (clusters.get(fault) ?? 0) < seeds / 100);
    expect(rare).toEqual([]);
    // A run in which nobody can write proves nothing.
    expect(acknowledged).toBeGreaterThan(seeds * 100);
  });

  test("the same seed gives the same run", () => {
    const [once, again] = [runScenario(7, { tracing: true }), runScenario(7, { tracing: true })];
    expect(once.trace.length).toBeGreaterThan(50);
    expect(again).toEqual(once);
  });
});

/** The first seed that breaks a promise; `counts`: where something goes wrong that is asked about. */
function findSeed(
  options: ScenarioOptions,
  counts: (seed: number, faults: Outcome["faults"]) => boolean = () => true,
  step = { from: 1, by: 1 },
): { seed: number; violation: string } | undefined {
  for (let seed = step.from; seed <= caughtWithin; seed += step.by) {
    const { violation, faults } = runScenario(seed, options);
    if (violation !== undefined && counts(seed, faults)) return { seed, violation };
  }
  return undefined;
}

const frozenTooLong: FaultClass = "a machine stands still, longer than a lease allows for";

describe("outside of what is assumed, somebody writes beside another", () => {
  test("a machine that stands still for longer than a lease allows for", () => {
    const found = findSeed({ strict: true }, (seed) => !isSkewedSeed(seed));
    expect(found?.violation).toMatch(/takes writes too/);
    expect(runScenario(found?.seed ?? 0).faults.has(frozenTooLong)).toBe(true);
  });

  test("clocks that run more differently than is assumed", () => {
    const found = findSeed({ strict: true }, (_, faults) => !faults.has(frozenTooLong), skewedSeeds);
    expect(found?.violation).toMatch(/takes writes too/);
  });
});

describe("a plan with one guard less is caught", () => {
  test.each(Object.entries(brokenRules))("%s", (name, rules) => {
    const found = findSeed({ rules });
    expect(found, name).toBeDefined();
    process.stdout.write(`caught by seed ${found?.seed}: ${name}: ${found?.violation}\n`);
    expect(found?.violation).toMatch(/takes writes too|without the acknowledged write/);
  });
});
