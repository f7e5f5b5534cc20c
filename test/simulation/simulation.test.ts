import { describe, expect, test } from "vitest";
import { brokenRules } from "./rules.ts";
import { runScenario } from "./scenario.ts";

/** `npm run simulate` looks at more; these are for every run of the tests. */
const seeds = 10_000;
/** A guard whose absence shows under none of this many seeds would not be tested at all. */
const caughtWithin = 6_000;

describe("simulated clusters under partitions, pauses, crashes, lost answers and deleted leases", () => {
  test(`seeds 1 to ${seeds}: one primary at a time, nothing acknowledged is lost, well again in the end`, {
    timeout: 600_000,
  }, () => {
    let acknowledged = 0;
    for (let seed = 1; seed <= seeds; seed += 1) {
      const outcome = runScenario(seed);
      expect(outcome.violation, `npm run simulate -- --trace ${seed}`).toBeUndefined();
      acknowledged += outcome.acknowledged;
    }
    // A run in which nobody can write proves nothing.
    expect(acknowledged).toBeGreaterThan(seeds * 100);
  });

  test("the same seed gives the same run", () => {
    const [once, again] = [runScenario(7, { tracing: true }), runScenario(7, { tracing: true })];
    expect(once.trace.length).toBeGreaterThan(50);
    expect(again).toEqual(once);
  });
});

/** The first seed that shows what a plan without one guard does. */
function findSeed(rules: (typeof brokenRules)[string]): { seed: number; violation: string } | undefined {
  for (let seed = 1; seed <= caughtWithin; seed += 1) {
    const { violation } = runScenario(seed, { rules });
    if (violation !== undefined) return { seed, violation };
  }
  return undefined;
}

describe("a plan with one guard less is caught", () => {
  test.each(Object.entries(brokenRules))("%s", (name, rules) => {
    const found = findSeed(rules);
    expect(found, name).toBeDefined();
    process.stdout.write(`caught by seed ${found?.seed}: ${name}: ${found?.violation}\n`);
    expect(found?.violation).toMatch(/takes writes too|without the acknowledged write/);
  });
});
