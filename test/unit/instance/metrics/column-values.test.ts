import { describe, expect, it } from "vitest";
import {
  formatLabelValue,
  parseMetricValue,
  parseNumberArray,
  parseTimestamp,
} from "../../../../src/instance/metrics/column-values.ts";
import { compileGlob, isGlob } from "../../../../src/instance/metrics/database-glob.ts";
import { countSynchronous } from "../../../../src/instance/metrics/server-metrics.ts";

const bool = 16;
const text = 25;
const timestamptz = 1184;

describe("metric values", () => {
  it.each([
    [null, text, Number.NaN],
    ["t", bool, 1],
    ["f", bool, 0],
    ["42", 20, 42],
    ["-1.5e3", text, -1500],
    [" 7 ", text, 7],
    ["NaN", 701, Number.NaN],
    ["-Infinity", 701, Number.NEGATIVE_INFINITY],
    ["many", text, undefined],
    ["", text, undefined],
    ["0x10", text, undefined],
    ["2026-11-30 00:00:00.25+00", timestamptz, 1_795_996_800.25],
  ])("%j of type %i is %d", (value, typeId, expected) => {
    expect(parseMetricValue(value, typeId)).toEqual(expected);
  });

  it.each([
    ["2026-11-30 00:03:26.212345+00", 1_795_997_006.212345],
    ["2026-11-30 02:33:26+02:30", 1_795_997_006],
    ["2026-11-29 19:03:26-05", 1_795_997_006],
    ["2026-11-30 00:03:26", 1_795_997_006],
    ["2026-11-30", 1_795_996_800],
    ["1969-12-31 23:59:59.5+00", -0.5],
    ["infinity", Number.POSITIVE_INFINITY],
    ["-infinity", Number.NEGATIVE_INFINITY],
    ["0044-03-15 12:00:00+00 BC", undefined],
    ["yesterday", undefined],
  ])("time %s", (value, seconds) => {
    expect(parseTimestamp(value)).toBe(seconds);
  });

  it.each([
    [null, text, ""],
    ["t", bool, "true"],
    ["f", bool, "false"],
    ["any text", text, "any text"],
    ["2026-11-30 00:03:26.9+00", timestamptz, "1795997006"],
  ])("label of %j and type %i", (value, typeId, expected) => {
    expect(formatLabelValue(value, typeId)).toBe(expected);
  });

  it.each([
    ["{}", []],
    ["{0.1,1,10}", [0.1, 1, 10]],
    ['{"1","2"}', [1, 2]],
    ["{a}", undefined],
    ["1,2", undefined],
    [null, undefined],
  ])("array %j", (value, expected) => {
    expect(parseNumberArray(value)).toEqual(expected);
  });
});

describe("database patterns", () => {
  it.each([
    ["*", "any", true],
    ["app*", "app_1", true],
    ["app*", "my_app", false],
    ["a?c", "abc", true],
    ["a?c", "ac", false],
    ["[a-c]x", "bx", true],
    ["[^a-c]x", "bx", false],
    ["[^a-c]x", "dx", true],
    ["a\\*", "a*", true],
    ["a\\*", "ab", false],
    ["a.b*", "axb", false],
    ["a.b*", "a.bc", true],
  ])("%s and %s", (pattern, name, matches) => {
    expect(isGlob(pattern)).toBe(true);
    expect(compileGlob(pattern)?.test(name)).toBe(matches);
  });

  it("tell names from patterns and refuse malformed ones", () => {
    expect(isGlob("plain-name")).toBe(false);
    expect(compileGlob("a[")).toBeUndefined();
    expect(compileGlob("a\\")).toBeUndefined();
    expect(compileGlob("[z-a]")).toBeUndefined();
  });
});

describe("synchronous_standby_names", () => {
  it.each([
    ["", 0],
    ["*", 1],
    ["a, b", 1],
    ['ANY 2 ("a","b","c")', 2],
    ["first 3 (a, b, c)", 3],
    ["2 (a, b)", 2],
  ])("%j asks for %i", (setting, number) => {
    expect(countSynchronous(setting)).toBe(number);
  });
});
