import { describe, expect, test } from "vitest";
import { judge, type Observation, percentile } from "../../chaos/verdict.ts";

const by =
  (server: string) =>
  (...list: [number, number][]) =>
    list.map(([row, at]) => ({ row, at, server }));
const old = by("10.244.1.2");
const successor = by("10.244.2.2");

const calm: Observation = {
  faultAt: 100,
  throughService: old([1, 90], [2, 99], [3, 101], [4, 102]),
  bySession: old([10, 99], [11, 100.5]),
  stored: new Set([1, 2, 3, 4, 10, 11]),
};

describe("judge", () => {
  test("measures the longest silence that ended after the fault", () => {
    expect(judge(calm).gapSeconds).toBe(2);
    const later = { ...calm, throughService: old([1, 99], [2, 100.1], [3, 104], [4, 104.1]) };
    expect(judge(later).gapSeconds).toBeCloseTo(3.9);
  });

  test("counts rows of both writers that are not there", () => {
    expect(judge(calm)).toMatchObject({ acknowledged: 6, lost: 0 });
    expect(judge({ ...calm, stored: new Set([1, 2, 10]) }).lost).toBe(3);
    expect(judge({ ...calm, stored: undefined }).lost).toBeNull();
  });

  test("tells how long the open session went on", () => {
    expect(judge(calm).sessionSeconds).toBe(0.5);
    expect(judge({ ...calm, bySession: old([10, 99]) }).sessionSeconds).toBe(0);
  });

  test("sees an old primary that acknowledges beside its successor", () => {
    const moved = { ...calm, throughService: [...old([1, 99]), ...successor([2, 110], [3, 111])] };
    expect(judge({ ...moved, bySession: old([10, 99], [11, 112]) }).overlapSeconds).toBe(2);
    expect(judge({ ...moved, bySession: old([10, 99], [11, 109]) }).overlapSeconds).toBe(0);
  });

  test("sees it also when the longest silence was another one, and when the successor is not the last", () => {
    const throughService = [...old([1, 99], [2, 101]), ...successor([3, 102], [4, 103]), ...old([5, 140])];
    expect(judge({ ...calm, throughService, bySession: old([10, 99], [11, 104]) }).overlapSeconds).toBe(2);
  });
});

test("percentile takes the nearest rank", () => {
  const values = Array.from({ length: 20 }, (_, index) => index + 1);
  expect(percentile(values, 0.5)).toBe(10);
  expect(percentile(values, 0.95)).toBe(19);
  expect(percentile([7], 0.99)).toBe(7);
  expect(percentile([], 0.5)).toBeUndefined();
});
