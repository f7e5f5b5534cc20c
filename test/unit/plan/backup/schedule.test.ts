import { expect, test } from "vitest";
import { nextSlot } from "../../../../src/plan/backup/schedule.ts";

const after = (schedule: string, from: string, zone = "UTC") => {
  const slot = nextSlot(schedule, Date.parse(from), zone);
  return slot === null ? null : new Date(slot).toISOString().replace(".000Z", "Z");
};

test.each([
  ["0 0 0 * * *", "2026-11-30T10:00:00Z", "2026-12-01T00:00:00Z"],
  ["*/15 * * * * *", "2026-11-30T10:00:00Z", "2026-11-30T10:00:15Z"],
  ["*/15 * * * * *", "2026-11-30T10:00:59.900Z", "2026-11-30T10:01:00Z"],
  ["5/20 * * * * *", "2026-11-30T10:00:26Z", "2026-11-30T10:00:45Z"],
  ["0 30 2,14 * * *", "2026-11-30T03:00:00Z", "2026-11-30T14:30:00Z"],
  ["0 0 12 * jan-mar MON-FRI", "2026-11-30T10:00:00Z", "2027-01-01T12:00:00Z"],
  // Both days restricted: either.
  ["0 0 0 13 * FRI", "2026-11-30T10:00:00Z", "2026-12-04T00:00:00Z"],
  // Only one restricted: that one.
  ["0 0 0 ? * SUN", "2026-11-30T10:00:00Z", "2026-12-06T00:00:00Z"],
  ["0 0 0 29 2 *", "2026-11-30T10:00:00Z", "2028-02-29T00:00:00Z"],
  // Five fields: seconds first, so this is every hour.
  ["0 0 * * *", "2026-11-30T10:20:00Z", "2026-11-30T11:00:00Z"],
  ["0 2 * * *", "2026-11-30T10:20:00Z", "2026-11-30T11:02:00Z"],
  ["0 0 2 * * *", "2026-11-30T10:20:00Z", "2026-12-01T02:00:00Z"],
  ["@hourly", "2026-11-30T10:20:00Z", "2026-11-30T11:00:00Z"],
  ["@daily", "2026-11-30T10:20:00Z", "2026-12-01T00:00:00Z"],
  ["@weekly", "2026-11-30T10:20:00Z", "2026-12-06T00:00:00Z"],
  ["@monthly", "2026-11-30T10:20:00Z", "2026-12-01T00:00:00Z"],
  ["@yearly", "2026-11-30T10:20:00Z", "2027-01-01T00:00:00Z"],
  ["@every 90m", "2026-11-30T10:20:00.500Z", "2026-11-30T11:50:00Z"],
  ["@every 100ms", "2026-11-30T10:20:00Z", "2026-11-30T10:20:01Z"],
  ["0 0 0 31 2 *", "2026-11-30T10:20:00Z", null],
  ["not a schedule", "2026-11-30T10:20:00Z", null],
  ["0 60 * * * *", "2026-11-30T10:20:00Z", null],
])("%s after %s is %s", (schedule, from, expected) => {
  expect(after(schedule, from)).toBe(expected);
});

test.each([
  ["a zone's own midnight", "0 0 0 * * *", "2026-07-01T10:00:00Z", "2026-07-01T22:00:00Z"],
  [
    "an hour that clocks skip runs when it would have been",
    "0 30 2 * * *",
    "2026-03-28T12:00:00Z",
    "2026-03-29T01:30:00Z",
  ],
  ["an hour that comes twice runs at the first", "0 30 2 * * *", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"],
  ["and not at the second", "0 30 2 * * *", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"],
])("%s", (_name, schedule, from, expected) => {
  expect(after(schedule, from, "Europe/Berlin")).toBe(expected);
});
