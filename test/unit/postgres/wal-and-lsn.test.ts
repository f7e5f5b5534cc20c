import { describe, expect, it } from "vitest";
import { compareLsn, formatLsn, lsnDistance, parseLsn } from "../../../src/postgres/lsn.ts";
import { parseTimelineHistory, switchPointOf } from "../../../src/postgres/timeline-history.ts";
import {
  formatHistoryName,
  formatWalSegment,
  isWalSegmentSize,
  nextWalSegment,
  parseWalFileName,
  parseWalSegment,
  previousWalSegment,
  walSegmentEnd,
  walSegmentOfLsn,
  walSegmentStart,
} from "../../../src/postgres/wal-name.ts";

const mib = 1024 * 1024;

describe("LSN", () => {
  it.each([
    ["0/0", 0n],
    ["0/5000168", 0x5000168n],
    ["FFFFFFFF/FFFFFFFF", 0xffffffffffffffffn],
    ["1a/b", 0x1a0000000bn],
  ])("reads %s", (text, value) => {
    expect(parseLsn(text)).toBe(value);
    expect(formatLsn(value)).toBe(text.toUpperCase());
  });

  it.each(["", "0", "0/", "/0", "0/123456789", "x/0", "0/0 ", "-1/0"])("refuses %j", (text) => {
    expect(parseLsn(text)).toBeUndefined();
  });

  it("orders by number, not by text, and says when it cannot", () => {
    expect(compareLsn("0/9", "0/10")).toBe(-1);
    expect(compareLsn("10/0", "9/FFFFFFFF")).toBe(1);
    expect(compareLsn("0/A", "0/a")).toBe(0);
    expect(compareLsn("", "0/1")).toBeUndefined();
    expect(lsnDistance("0/FFFFFFFF", "1/0")).toBe(1n);
    expect(lsnDistance("1/0", "0/FFFFFFFF")).toBe(-1n);
    expect(lsnDistance("1/0", "none")).toBeUndefined();
  });
});

describe("WAL file names", () => {
  it.each([
    ["000000010000000000000005", { kind: "segment", timeline: 1, log: 0, segment: 5 }],
    ["0000000AFFFFFFFF000000FF", { kind: "segment", timeline: 10, log: 0xffffffff, segment: 255 }],
    ["000000018000000000000000.partial", { kind: "partial", timeline: 1, log: 0x80000000, segment: 0 }],
    ["00000002.history", { kind: "history", timeline: 2 }],
    [
      "000000010000000000000003.00000028.backup",
      { kind: "backupLabel", timeline: 1, log: 0, segment: 3, offset: 0x28 },
    ],
  ])("reads %s", (name, parsed) => {
    expect(parseWalFileName(name)).toEqual(parsed);
  });

  it.each([
    "",
    "xlogtemp.12",
    "00000001000000000000000",
    "00000001000000000000000G",
    "00000001.histor",
    "RECOVERYXLOG",
  ])("refuses %j", (name) => {
    expect(parseWalFileName(name)).toBeUndefined();
  });

  it("takes only whole segments for segments", () => {
    expect(parseWalSegment("000000018000000000000000.partial")).toBeUndefined();
    expect(parseWalSegment("00000002.history")).toBeUndefined();
  });

  it.each([
    [16 * mib, "0000000100000000000000FE", "0000000100000000000000FF", "000000010000000100000000"],
    [1 * mib, "000000018000000000000FFE", "000000018000000000000FFF", "000000018000000100000000"],
    [1024 * mib, "000000010000000000000002", "000000010000000000000003", "000000010000000100000000"],
  ])("count in segments of %i bytes", (bytes, before, name, after) => {
    const segment = parseWalSegment(name);
    if (!segment) throw new Error("unreadable");
    const [next, previous] = [nextWalSegment(segment, bytes), previousWalSegment(segment, bytes)];
    expect(next && formatWalSegment(next)).toBe(after);
    expect(previous && formatWalSegment(previous)).toBe(before);
    expect(next && walSegmentStart(next, bytes)).toBe(walSegmentEnd(segment, bytes));
  });

  it("end at both ends of the numbers", () => {
    expect(previousWalSegment({ timeline: 1, log: 0, segment: 0 })).toBeUndefined();
    expect(nextWalSegment({ timeline: 1, log: 0xffffffff, segment: 255 })).toBeUndefined();
  });

  it("follow from positions", () => {
    expect(formatWalSegment(walSegmentOfLsn(3, 0x5000168n))).toBe("000000030000000000000005");
    expect(formatWalSegment(walSegmentOfLsn(3, 0x9_ffff_ffffn, 64 * mib))).toBe("00000003000000090000003F");
    expect(formatHistoryName(11)).toBe("0000000B.history");
  });

  it("know the sizes that PostgreSQL can be built with", () => {
    expect([mib, 16 * mib, 1024 * mib].every(isWalSegmentSize)).toBe(true);
    expect([0, 3 * mib, mib / 2, 2048 * mib].some(isWalSegmentSize)).toBe(false);
  });
});

describe("timeline history", () => {
  it("reads switches with their reasons", () => {
    const history = parseTimelineHistory(
      "# a comment\n1\t0/3000000\tno recovery target specified\n\n3\t0/5000168\tx y\n",
    );
    expect(history).toEqual([
      { timeline: 1, switchPoint: 0x3000000n, reason: "no recovery target specified" },
      { timeline: 3, switchPoint: 0x5000168n, reason: "x y" },
    ]);
    expect(switchPointOf(history ?? [], 3)).toBe(0x5000168n);
    expect(switchPointOf(history ?? [], 2)).toBeUndefined();
  });

  it.each(["nonsense", "1 zero/0 x", "2 0/1 x\n1 0/2 x"])("refuses %j", (text) => {
    expect(parseTimelineHistory(text)).toBeUndefined();
  });
});
