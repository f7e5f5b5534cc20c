import { parseGoDuration } from "../../postgres/go-duration.ts";

interface CronField {
  name: string;
  min: number;
  max: number;
  words?: readonly string[];
}

const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"] as const;
const days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] as const;

/** Fields of a schedule in their order; seconds come first, the last one may be left out. */
const fields: readonly CronField[] = [
  { name: "second", min: 0, max: 59 },
  { name: "minute", min: 0, max: 59 },
  { name: "hour", min: 0, max: 23 },
  { name: "day of month", min: 1, max: 31 },
  { name: "month", min: 1, max: 12, words: months },
  { name: "day of week", min: 0, max: 6, words: days },
];

const descriptors = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/** What is wrong with a backup schedule, or null. */
export function checkSchedule(schedule: string): string | null {
  const text = schedule.trim();
  if (text.startsWith("@")) return checkDescriptor(text);
  const parts = text.split(/\s+/).filter((part) => part !== "");
  if (parts.length < 5 || parts.length > 6) return `expected 5 to 6 fields, found ${parts.length}: ${schedule}`;
  for (const [i, part] of parts.entries()) {
    const problem = checkField(part, fields[i] as CronField);
    if (problem) return problem;
  }
  return null;
}

/** Number of fields of a schedule; 0 for a descriptor. */
export function countScheduleFields(schedule: string): number {
  const text = schedule.trim();
  return text.startsWith("@") || text === "" ? 0 : text.split(/\s+/).length;
}

function checkDescriptor(text: string): string | null {
  if (descriptors.includes(text)) return null;
  const every = /^@every\s+(.+)$/.exec(text)?.[1];
  if (every === undefined) return `unrecognized descriptor: ${text}`;
  const duration = parseGoDuration(every);
  return duration === undefined || duration <= 0 ? `failed to parse duration ${text}` : null;
}

function checkField(text: string, field: CronField): string | null {
  for (const range of text.split(",")) {
    const problem = checkRange(range, field);
    if (problem) return problem;
  }
  return null;
}

function checkRange(text: string, field: CronField): string | null {
  const [bounds = "", step, ...more] = text.split("/");
  if (more.length > 0) return `too many slashes in ${field.name}: ${text}`;
  if (step !== undefined && !/^0*[1-9]\d*$/.test(step))
    return `step of ${field.name} is not a positive number: ${text}`;
  if (bounds === "*" || bounds === "?") return null;
  const [first = "", last, ...rest] = bounds.split("-");
  if (rest.length > 0) return `too many hyphens in ${field.name}: ${text}`;
  const start = parseValue(first, field);
  const end = last === undefined ? start : parseValue(last, field);
  if (start === undefined || end === undefined) return `failed to parse ${field.name}: ${text}`;
  if (start < field.min) return `${field.name} is below its minimum (${field.min}): ${text}`;
  if (end > field.max) return `${field.name} is above its maximum (${field.max}): ${text}`;
  return start > end ? `${field.name} begins after its end: ${text}` : null;
}

function parseValue(text: string, { words = [], min }: CronField): number | undefined {
  const word = words.indexOf(text.toLowerCase());
  if (word >= 0) return word + min;
  return /^\d+$/.test(text) ? Number(text) : undefined;
}
