/** Type oids that need more than reading a number. */
const booleanType = 16;
const timeTypes: ReadonlySet<number> = new Set([1082, 1114, 1184]);

/** Number of a column's text; null is NaN, `undefined` says that the text is none. */
export function parseMetricValue(text: string | null, typeId: number): number | undefined {
  if (text === null) return Number.NaN;
  if (typeId === booleanType) return text === "t" ? 1 : 0;
  if (timeTypes.has(typeId)) return parseTimestamp(text);
  return parseNumber(text);
}

/** Label text of a column: empty for null, words for booleans, seconds for times. */
export function formatLabelValue(text: string | null, typeId: number): string {
  if (text === null) return "";
  if (typeId === booleanType) return text === "t" ? "true" : "false";
  if (timeTypes.has(typeId)) return String(Math.floor(parseTimestamp(text) ?? Number.NaN));
  return text;
}

/** Seconds since the epoch of a time in ISO style; times without a zone count as UTC. `undefined` when it is none. */
export function parseTimestamp(text: string): number | undefined {
  if (text === "infinity") return Number.POSITIVE_INFINITY;
  if (text === "-infinity") return Number.NEGATIVE_INFINITY;
  const match =
    /^(\d{4,6})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d):(\d\d)(\.\d+)?)?(?:([-+])(\d\d)(?::?(\d\d))?(?::?(\d\d))?)?( BC)?$/.exec(
      text,
    );
  if (!match || match[12]) return undefined;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map((part) => Number(part ?? 0));
  const local = Date.UTC(year ?? 0, (month ?? 1) - 1, day ?? 1, hour ?? 0, minute ?? 0, second ?? 0) / 1000;
  const [zoneHours, zoneMinutes, zoneSeconds] = match.slice(9, 12).map((part) => Number(part ?? 0));
  const offset = (zoneHours ?? 0) * 3600 + (zoneMinutes ?? 0) * 60 + (zoneSeconds ?? 0);
  const seconds = local - (match[8] === "-" ? -offset : offset);
  // Digits are joined as text, because adding a fraction to a big number would round twice.
  return match[7] === undefined ? seconds : seconds < 0 ? seconds + Number(match[7]) : Number(`${seconds}${match[7]}`);
}

/** Numbers of a one-dimensional array such as `{0.1,1,NULL}`; `undefined` when it is none. */
export function parseNumberArray(text: string | null): number[] | undefined {
  if (text === null || !text.startsWith("{") || !text.endsWith("}")) return undefined;
  const inner = text.slice(1, -1);
  if (inner === "") return [];
  const numbers = inner.split(",").map((item) => parseNumber(item.replace(/^"|"$/g, "")));
  return numbers.every((number) => number !== undefined) ? (numbers as number[]) : undefined;
}

function parseNumber(text: string): number | undefined {
  const trimmed = text.trim();
  if (/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(trimmed)) return Number(trimmed);
  if (/^nan$/i.test(trimmed)) return Number.NaN;
  const infinity = /^([-+]?)inf(inity)?$/i.exec(trimmed);
  if (infinity) return infinity[1] === "-" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  return undefined;
}
