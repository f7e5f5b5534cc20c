import { describe, expect, test } from "vitest";
import { brokenRules } from "./rules.ts";
import { runScenario } from "./scenario.ts";
import { beyondAssumptions, catchBrokenPlan, frozenTooLong, sweep } from "./sweep.ts";

/** `npm run simulate` looks at more; these are for every run of the tests. */
const seeds = 10_000;

describe("simulated clusters under partitions, pauses, crashes, lost answers, old reads, lost writes and deleted leases", () => {
  test(`seeds 1 to ${seeds}: one primary at a time, nothing acknowledged is lost, well again in the end`, {
    timeout: 600_000,
  }, () => {
    const { broken, acknowledged, clusters } = sweep(seeds);
    expect(broken?.violation, `npm run simulate -- --trace ${broken?.seed}`).toBeUndefined();
    // One in which something never goes wrong tells nothing about it.
    const rare = [...clusters].filter(([, count]) => count < seeds / 100);
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

describe("outside of what is assumed, somebody writes beside another", () => {
  test.each(Object.entries(beyondAssumptions))("%s", (_, find) => {
    expect(find()?.violation).toMatch(/takes writes too/);
  });

  test("and only there: no cluster whose clocks are right does so without a machine that stood still for too long", () => {
    const found = beyondAssumptions[frozenTooLong]();
    expect(runScenario(found?.seed ?? 0).faults.has(frozenTooLong)).toBe(true);
  });
});

describe("a plan with one guard less is caught", () => {
  test.each(Object.keys(brokenRules))("%s", (name) => {
    const found = catchBrokenPlan(name);
    expect(found, name).toBeDefined();
    process.stdout.write(`caught by seed ${found?.seed}: ${name}: ${found?.violation}\n`);
    expect(found?.violation).toMatch(/takes writes too|without the acknowledged write/);
  });
});
