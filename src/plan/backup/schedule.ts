// Schedules of ScheduledBackups: the grammar of robfig/cron 1.2 with seconds first (reference: backups §4.11). Texts are
// checked at admission (src/schema/admission/cron-syntax.ts); here one that is wrong simply has no next time.
import { parseGoDuration } from "../../postgres/go-duration.ts";
import { checkSchedule } from "../../schema/admission/cron-syntax.ts";
import { instantOf, type WallTime, wallTimeOf } from "./wall-time.ts";

interface Field {
  min: number;
  max: number;
  words?: readonly string[];
}

const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const fields: readonly Field[] = [
  { min: 0, max: 59 },
  { min: 0, max: 59 },
  { min: 0, max: 23 },
  { min: 1, max: 31 },
  { min: 1, max: 12, words: months },
  { min: 0, max: 6, words: days },
];

const descriptors: Readonly<Record<string, string>> = {
  "@yearly": "0 0 0 1 1 *",
  "@annually": "0 0 0 1 1 *",
  "@monthly": "0 0 0 1 * *",
  "@weekly": "0 0 0 * * 0",
  "@daily": "0 0 0 * * *",
  "@midnight": "0 0 0 * * *",
  "@hourly": "0 0 * * * *",
};

/** The search ends here, in years. */
const horizonYears = 5;

/**
 * First time after an instant at which the schedule is due, in milliseconds since the epoch; `null` when there is none within
 * five years or the text is no schedule. `timeZone` is an IANA name.
 */
export function nextSlot(schedule: string, afterMs: number, timeZone: string): number | null {
  const text = schedule.trim();
  if (checkSchedule(text) !== null) return null;
  const every = /^@every\s+(.+)$/.exec(text)?.[1];
  if (every !== undefined) return nextInterval(every, afterMs);
  const parts = (descriptors[text] ?? text).split(/\s+/);
  const sets = fields.map((field, at) => parseField(parts[at] ?? "*", field));
  const [seconds, minutes, hours, monthDays, monthSet, weekDays] = sets as [
    Values,
    Values,
    Values,
    Values,
    Values,
    Values,
  ];
  const start = wallTimeOf(Math.floor(afterMs / 1_000) * 1_000 + 1_000, timeZone);
  const isDay = (day: WallTime) => {
    const byMonth = monthDays.values.has(day.day);
    const byWeek = weekDays.values.has(new Date(Date.UTC(day.year, day.month - 1, day.day)).getUTCDay());
    // Two restrictions widen each other, one alone holds.
    return monthDays.isAny || weekDays.isAny ? byMonth && byWeek : byMonth || byWeek;
  };
  const last = Date.UTC(start.year + horizonYears, start.month - 1, start.day);
  for (let at = Date.UTC(start.year, start.month - 1, start.day); at <= last; at += 86_400_000) {
    const date = new Date(at);
    const day = {
      year: date.getUTCFullYear(),
      month: date.getUTCMonth() + 1,
      day: date.getUTCDate(),
      hour: 0,
      minute: 0,
      second: 0,
    };
    if (!monthSet.values.has(day.month) || !isDay(day)) continue;
    const slot = firstOfDay(day, { seconds, minutes, hours }, afterMs, timeZone);
    if (slot !== null) return slot;
  }
  return null;
}

function firstOfDay(
  day: WallTime,
  { seconds, minutes, hours }: { seconds: Values; minutes: Values; hours: Values },
  afterMs: number,
  timeZone: string,
): number | null {
  for (const hour of hours.sorted) {
    // An hour that lies wholly before needs no look at its seconds; clocks are never set by more than a few hours.
    if (instantOf({ ...day, hour, minute: 59, second: 59 }, timeZone) <= afterMs) continue;
    for (const minute of minutes.sorted) {
      for (const second of seconds.sorted) {
        const instant = instantOf({ ...day, hour, minute, second }, timeZone);
        if (instant > afterMs) return instant;
      }
    }
  }
  return null;
}

/** Counted from the last time, in whole seconds. */
function nextInterval(duration: string, afterMs: number): number | null {
  const ms = parseGoDuration(duration);
  if (ms === undefined) return null;
  const whole = Math.max(1_000, Math.floor(ms / 1_000) * 1_000);
  return Math.floor(afterMs / 1_000) * 1_000 + whole;
}

interface Values {
  values: ReadonlySet<number>;
  sorted: readonly number[];
  /** Written as a star, also with a step. */
  isAny: boolean;
}

function parseField(text: string, field: Field): Values {
  const values = new Set<number>();
  let isAny = false;
  for (const range of text.split(",")) {
    const [bounds = "", step] = range.split("/");
    const star = bounds === "*" || bounds === "?";
    isAny ||= star;
    const [first = "", last] = bounds.split("-");
    const start = star ? field.min : parseValue(first, field);
    // `5/10` means from 5 on.
    const end = star || (last === undefined && step !== undefined) ? field.max : parseValue(last ?? first, field);
    for (let value = start; value <= end; value += Number(step ?? 1)) values.add(value);
  }
  return { values, sorted: [...values].sort((a, b) => a - b), isAny };
}

function parseValue(text: string, { words = [], min }: Field): number {
  const word = words.indexOf(text.toLowerCase());
  return word >= 0 ? word + min : Number(text);
}
