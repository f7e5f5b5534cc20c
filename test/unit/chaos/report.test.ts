import { describe, expect, test } from "vitest";
import type { ChaosRecord } from "../../chaos/chaos-record.ts";
import { brokePromise, renderReport } from "../../chaos/report.ts";

const good: ChaosRecord = {
  fault: "pod-deleted",
  durability: "required",
  moved: true,
  date: "2026-11-30T10:38:59.539Z",
  commit: "135f47e",
  healthySeconds: 15.4,
  load: 3,
  gapSeconds: 3,
  acknowledged: 400,
  lost: 0,
  sessionSeconds: 0.4,
  overlapSeconds: 0,
};

const catalogue = {
  Pods: { "pod-deleted": { about: "a pod is deleted" } },
  Disks: { "disk-dead": { about: "a disk dies" } },
};
const line = (report: string, start: string) => report.split("\n").find((each) => each.startsWith(start));

describe("renderReport", () => {
  test("has a line for each fault and kind of replication, under the heading of its kind", () => {
    const runs = [good, { ...good, gapSeconds: 5, overlapSeconds: 0, acknowledged: 100 }];
    const report = renderReport([...runs, { ...good, durability: "none", lost: 2 }], catalogue);
    expect(report).toContain("3 runs, 0 of which broke a promise.");
    expect(report).toContain("## Pods");
    expect(report).not.toContain("## Disks");
    expect(line(report, "| a pod is deleted | required")).toBe(
      "| a pod is deleted | required | 2 | 3.0 | 5.0 | 5.0 | 0.4 | 0.0 | 500 | 0 | 15.4 |",
    );
    expect(line(report, "| a pod is deleted | none")).toContain("| 400 | 2 |");
  });

  test("tells a run after which nobody could tell what is there from one that lost nothing", () => {
    const report = renderReport(
      [good, { ...good, lost: null, broken: "the cluster to be whole: not within 600 s." }],
      catalogue,
    );
    expect(line(report, "| a pod is deleted")).toContain("| 0, unknown in 1 |");
    expect(report).toContain("2 runs, 1 of which broke a promise (last section).");
    expect(line(report, "| pod-deleted | required | 2026-11-30")).toContain(
      "| unknown | the cluster to be whole: not within 600 s. |",
    );
  });

  test("counts runs of faults that are not made any more", () => {
    expect(renderReport([{ ...good, fault: "flood" }], catalogue)).toContain(
      "1 are of faults that are not made any more",
    );
  });
});

test.each<[string, Partial<ChaosRecord>, boolean]>([
  ["nothing lost", {}, false],
  ["lost with required replication", { lost: 1 }, true],
  ["unknown with required replication", { lost: null }, true],
  ["lost without", { lost: 1, durability: "none" }, false],
  ["two primaries", { overlapSeconds: 0.1, durability: "none" }, true],
  ["something else", { broken: "no segment was archived", durability: "none" }, true],
])("%s", (_, record, broke) => {
  expect(brokePromise({ ...good, ...record }, {})).toBe(broke);
});

test.each<[string, Partial<ChaosRecord>, boolean]>([
  ["an acknowledgement at the thaw", { overlapSeconds: 9, lost: 1, durability: "none" }, false],
  ["one in spite of required replication", { overlapSeconds: 9, durability: "required" }, true],
  ["something else", { broken: "no segment was archived", durability: "none" }, true],
])("where the launcher stood still too: %s", (_, record, broke) => {
  expect(brokePromise({ ...good, ...record }, { stopsLauncher: true })).toBe(broke);
});
