import { describe, expect, it } from "vitest";
import { encodeCpuProfile, encodeHeapProfile } from "../../../src/runtime/profile-format.ts";
import { readProfile } from "../../support/profiles.ts";

const frame = (functionName: string, lineNumber = 0, url = "file:///controller/manager.cjs") => ({
  functionName,
  lineNumber,
  columnNumber: 4,
  scriptId: "1",
  url,
});
const facts = { program: "/controller/manager.cjs", startedAt: 1_795_996_800_000 };

describe("a CPU profile", () => {
  const nodes = [
    { id: 1, callFrame: frame("(root)", -1, ""), children: [2, 3, 4] },
    { id: 2, callFrame: frame("(idle)", -1, "") },
    { id: 3, callFrame: frame("main", 9), children: [5, 6] },
    { id: 4, callFrame: frame("(garbage collector)", -1, "") },
    { id: 5, callFrame: frame("", 19), children: [7] },
    { id: 6, callFrame: frame("readFile", 2, "node:fs") },
    { id: 7, callFrame: frame("main", 9) },
  ];
  const encode = (samples: number[], timeDeltas: number[], endTime = 1_000_000) =>
    encodeCpuProfile({ nodes, startTime: 0, endTime, samples, timeDeltas }, { ...facts, intervalMicros: 10_000 });

  it("gives each function the time until the next sample, and a process that waits none", async () => {
    const profile = readProfile(await encode([2, 3, 7, 7, 2, 6, 4], [100, 50, 10, 20, 30, 40, 5], 1_000));
    expect(profile).toMatchObject({
      types: ["samples/count", "cpu/nanoseconds"],
      periodType: "cpu/nanoseconds",
      period: 10_000_000,
      durationNanos: 1_000_000,
    });
    expect(profile.paths).toEqual([
      { names: ["main"], values: [1, 10_000] },
      { names: ["main", "(anonymous manager.cjs:20)", "main"], values: [2, 50_000] },
      { names: ["readFile", "main"], values: [1, 5_000] },
      { names: ["(garbage collector)"], values: [1, 745_000] },
    ]);
    expect(profile.functions).toEqual([
      "main /controller/manager.cjs",
      "(anonymous manager.cjs:20) /controller/manager.cjs",
      "readFile node:fs",
      "(garbage collector) ",
    ]);
  });

  it("takes no time back when samples come out of order", async () => {
    const { totals } = readProfile(await encode([3, 3, 3], [0, -50, 100], 50));
    expect(totals).toEqual({ "samples/count": 3, "cpu/nanoseconds": 100_000 });
  });

  it("of a process that only waited is empty", async () => {
    expect(readProfile(await encode([2, 2], [10, 10])).paths).toEqual([]);
  });

  it("keeps hours apart to the nanosecond", async () => {
    const micros = 6 * 3_600 * 1_000_000;
    const { totals } = readProfile(await encode([3], [0], micros));
    expect(totals["cpu/nanoseconds"]).toBe(micros * 1_000);
  });
});

describe("a heap profile", () => {
  it("gives the bytes in use by the path that asked for them", async () => {
    const profile = await encodeHeapProfile(
      {
        head: {
          callFrame: frame("(root)", -1, ""),
          selfSize: 0,
          children: [
            {
              callFrame: frame("load", 3),
              selfSize: 5_000_000_000,
              children: [{ callFrame: frame("parse", 8), selfSize: 64, children: [] }],
            },
            { callFrame: frame("gone", 1), selfSize: 0, children: [] },
          ],
        },
      },
      { ...facts, intervalBytes: 524_288 },
    );
    const { types, paths, periodType, period, totals } = readProfile(profile);
    expect({ types, periodType, period }).toEqual({
      types: ["inuse_space/bytes"],
      periodType: "space/bytes",
      period: 524_288,
    });
    expect(paths).toEqual([
      { names: ["load"], values: [5_000_000_000] },
      { names: ["parse", "load"], values: [64] },
    ]);
    expect(totals["inuse_space/bytes"]).toBe(5_000_000_064);
  });
});
