import { describe, expect, test } from "vitest";
import { judge, type Observation, percentile } from "../../chaos/verdict.ts";

const rows = (...list: [number, number][]) => list.map(([row, at]) => ({ row, at }));
const calm: Observation = {
  faultAt: 100,
  throughService: rows([1, 90], [2, 99], [3, 101], [4, 102]),
  bySession: rows([10, 99], [11, 100.5]),
  stored: new Set([1, 2, 3, 4, 10, 11]),
  moved: false,
};

describe("judge", () => {
  test("measures the longest silence that ended after the fault", () => {
    expect(judge(calm).gapSeconds).toBe(2);
    const later = { ...calm, throughService: rows([1, 99], [2, 100.1], [3, 104], [4, 104.1]) };
    expect(judge(later).gapSeconds).toBeCloseTo(3.9);
  });

  test("counts rows of both writers that are not there", () => {
    expect(judge(calm)).toMatchObject({ acknowledged: 6, lost: 0 });
    expect(judge({ ...calm, stored: new Set([1, 2, 10]) }).lost).toBe(3);
  });

  test("tells how long the open session went on", () => {
    expect(judge(calm).sessionSeconds).toBe(0.5);
    expect(judge({ ...calm, bySession: rows([10, 99]) }).sessionSeconds).toBe(0);
  });

  test("sees an old primary that acknowledges beside its successor", () => {
    const split = {
      ...calm,
      moved: true,
      throughService: rows([1, 99], [2, 110], [3, 111]),
      bySession: rows([10, 99], [11, 112]),
    };
    expect(judge(split).overlapSeconds).toBe(2);
    expect(judge({ ...split, moved: false }).overlapSeconds).toBe(0);
    expect(judge({ ...split, bySession: rows([10, 99], [11, 109]) }).overlapSeconds).toBe(0);
  });
});

test("percentile takes the nearest rank", () => {
  const values = Array.from({ length: 20 }, (_, index) => index + 1);
  expect(percentile(values, 0.5)).toBe(10);
  expect(percentile(values, 0.95)).toBe(19);
  expect(percentile([7], 0.99)).toBe(7);
  expect(percentile([], 0.5)).toBeUndefined();
});
