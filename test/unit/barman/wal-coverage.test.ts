import { describe, expect, test } from "vitest";
import {
  computeCoverage,
  findMissingSegments,
  lastContiguousSegment,
  rangesAlong,
  requiredRange,
} from "../../../src/barman/wal-coverage.ts";
import { parseWalSegment, type WalSegment } from "../../../src/postgres/wal-name.ts";

const mib = 1 << 20;
const segment = (name: string): WalSegment => parseWalSegment(name) ?? { timeline: 0, log: 0, segment: 0 };
const row = (timeline: number, from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, at) => name(timeline, from + at));
const name = (timeline: number, number: number) =>
  `0000000${timeline}00000000000000${number.toString(16).toUpperCase().padStart(2, "0")}`;

describe("holes", () => {
  test("a hole below the highest name is found", () => {
    const present = new Set(row(1, 1, 9).filter((each) => each !== name(1, 5)));
    const range = { from: segment(name(1, 1)), to: segment(name(1, 9)) };
    expect(findMissingSegments(present, range, 16 * mib)).toEqual([name(1, 5)]);
    expect(lastContiguousSegment(present, range.from, 16 * mib)).toEqual(segment(name(1, 4)));
    expect(lastContiguousSegment(present, segment(name(1, 5)), 16 * mib)).toBeUndefined();
  });

  test.each([
    [16, "0000000100000000000000FF", "000000010000000100000000"],
    [64, "00000001000000000000003F", "000000010000000100000000"],
    [1, "000000010000000000000FFF", "000000010000000100000000"],
  ])("segments of %i MiB go over to the next log number at their own place", (size, last, next) => {
    expect(findMissingSegments(new Set(), { from: segment(last), to: segment(next) }, size * mib)).toEqual([
      last,
      next,
    ]);
  });

  test("the number of names is bounded", () => {
    const range = { from: segment(name(1, 1)), to: segment("0000000100000FFF00000000") };
    expect(findMissingSegments(new Set(), range, 16 * mib, 3)).toHaveLength(3);
  });

  test("what a backup needs", () => {
    expect(requiredRange({ beginWal: name(1, 5), endWal: name(1, 7) })).toEqual({
      from: segment(name(1, 5)),
      to: segment(name(1, 7)),
    });
    expect(requiredRange({ beginWal: name(1, 5), endWal: null })).toBeUndefined();
    expect(requiredRange({ beginWal: name(1, 5), endWal: name(2, 7) })).toBeUndefined();
  });
});

describe("along timelines", () => {
  const history = [
    { timeline: 1, switchPoint: 0x5000100n, reason: "" },
    { timeline: 2, switchPoint: 0x8000000n, reason: "" },
  ];
  const start = { timeline: 1, lsn: 0x3000028n };

  test("the segment of a switch is read from the new timeline", () => {
    expect(rangesAlong(history, 3, start, 16 * mib)).toEqual({
      closed: [
        { from: segment(name(1, 3)), to: segment(name(1, 4)) },
        { from: segment(name(2, 5)), to: segment(name(2, 7)) },
      ],
      open: segment(name(3, 8)),
      histories: ["00000002.history", "00000003.history"],
    });
  });

  test("a complete way has no holes, and ends with the last unbroken segment", () => {
    const present = new Set([
      ...row(1, 1, 4),
      ...row(2, 5, 7),
      ...row(3, 8, 11),
      "00000002.history",
      "00000003.history",
    ]);
    expect(computeCoverage(present, history, 3, start, 16 * mib)).toEqual({ missing: [], last: name(3, 11) });
    present.delete(name(2, 6));
    present.delete(name(3, 9));
    present.delete("00000003.history");
    expect(computeCoverage(present, history, 3, start, 16 * mib)).toEqual({
      missing: ["00000003.history", name(2, 6), name(3, 9)],
      last: name(3, 8),
    });
  });

  test("a start off the way has no coverage", () => {
    expect(computeCoverage(new Set(), history, 3, { timeline: 7, lsn: 0n }, 16 * mib)).toBeUndefined();
    expect(computeCoverage(new Set(), history, 3, { timeline: 1, lsn: 0x6000000n }, 16 * mib)).toBeUndefined();
  });

  test("one timeline needs no history", () => {
    const present = new Set(row(1, 3, 6));
    expect(computeCoverage(present, [], 1, start, 16 * mib)).toEqual({ missing: [], last: name(1, 6) });
    expect(computeCoverage(new Set(), [], 1, start, 16 * mib)).toEqual({ missing: [], last: undefined });
  });
});
