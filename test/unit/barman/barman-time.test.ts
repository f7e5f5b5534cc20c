import { expect, test } from "vitest";
import { barmanTimeMs, formatBarmanTime, parseBarmanTime } from "../../../src/barman/barman-time.ts";

test.each([
  ["2026-05-01 10:11:12.345678+00:00", "2026-05-01T10:11:12.345Z"],
  ["2026-05-01 10:11:12+00:00", "2026-05-01T10:11:12.000Z"],
  ["2026-05-01 10:11:12.000001+05:30", "2026-05-01T04:41:12.000Z"],
  ["2026-01-01 00:00:00.500000-03:00", "2026-01-01T03:00:00.500Z"],
  ["2026-05-01 10:11:12", "2026-05-01T10:11:12.000Z"],
])("%s is read and written unchanged", (text, iso) => {
  const time = parseBarmanTime(text);
  expect(time && formatBarmanTime(time)).toBe(text);
  expect(time && new Date(barmanTimeMs(time)).toISOString()).toBe(iso);
});

test.each([
  ["2026-05-01T10:11:12.345678Z", "2026-05-01 10:11:12.345678+00:00"],
  ["2026-05-01T10:11:12+0200", "2026-05-01 10:11:12+02:00"],
  ["2026-05-01T10:11:12.1+02", "2026-05-01 10:11:12.100000+02:00"],
  ["Fri May  1 10:11:12 2026", "2026-05-01 10:11:12"],
])("%s is read and written as %s", (text, written) => {
  const time = parseBarmanTime(text);
  expect(time && formatBarmanTime(time)).toBe(written);
});

test.each(["", "None", "2026-02-30 10:00:00", "2026-05-01", "2026-05-01 25:00:00", "yesterday", "2026-05-01 10:61:00"])(
  "%j is no time",
  (text) => {
    expect(parseBarmanTime(text)).toBeUndefined();
  },
);
