import { expect, test } from "vitest";
import { planDrain } from "../../../../src/plan/instance/drain.ts";

const shared = {
  timeline: 2,
  position: 0x5800000n,
  history: [{ timeline: 1, switchPoint: 0x4800000n, reason: "" }],
  segmentBytes: 0x1000000,
};

test("a former primary archives what ends before the switch, histories first, and nothing of another branch", () => {
  const plan = planDrain(
    [
      "000000010000000000000003",
      "000000010000000000000002",
      "000000010000000000000004",
      "000000010000000000000002.partial",
      "00000002.history",
      "000000020000000000000004",
      "000000020000000000000005",
      "000000030000000000000002",
    ],
    shared,
  );
  expect(plan.archive).toEqual([
    "00000002.history",
    "000000010000000000000002",
    "000000010000000000000003",
    "000000020000000000000004",
  ]);
  expect(plan.divergent.map(({ name }) => name)).toEqual([
    "000000010000000000000004",
    "000000010000000000000002.partial",
    "000000020000000000000005",
    "000000030000000000000002",
  ]);
});
