/** What clocks on the wall show; months and days from 1. */
export interface WallTime {
  year: number;
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** What the clocks of a zone show at an instant; an unknown zone throws a RangeError. */
export function wallTimeOf(instantMs: number, timeZone: string): WallTime {
  const parts = Object.fromEntries(
    formatOf(timeZone)
      .formatToParts(instantMs)
      .map(({ type, value }) => [type, Number(value)]),
  );
  const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = parts;
  return { year, month, day, hour, minute, second };
}

/**
 * The instant at which clocks show that. A time that is shown twice is the first; one that is left out, because clocks were
 * set forward, is as much later as they were set.
 */
export function instantOf(wall: WallTime, timeZone: string): number {
  const asUtc = utcOf(wall);
  // The offset before and after any change of clocks around: one of them is right.
  const candidates = [-86_400_000, 86_400_000].map((distance) => asUtc - offsetAt(asUtc + distance, timeZone));
  const exact = candidates.filter((instant) => utcOf(wallTimeOf(instant, timeZone)) === asUtc);
  return exact.length > 0 ? Math.min(...exact) : (candidates[0] ?? asUtc);
}

function offsetAt(instantMs: number, timeZone: string): number {
  return utcOf(wallTimeOf(instantMs, timeZone)) - Math.floor(instantMs / 1_000) * 1_000;
}

function utcOf({ year, month, day, hour, minute, second }: WallTime): number {
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  let format = formats.get(timeZone);
  if (!format) {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
    formats.set(timeZone, format);
  }
  return format;
}
