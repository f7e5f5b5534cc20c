/** A moment as Barman writes it: microseconds, and the offset that the text shows. */
export interface BarmanTime {
  /** Microseconds since the epoch; a safe integer until the year 2255. */
  epochMicros: number;
  /** Minutes east of UTC in the text; `undefined` when the text had none, which means the reader's zone. */
  offsetMinutes: number | undefined;
}

const isoPattern =
  /^(\d{4})-(\d{2})-(\d{2})[ T](\d{2}):(\d{2}):(\d{2})(?:[.,](\d{1,9}))?\s*(Z|UTC|[+-]\d{2}(?::?\d{2})?)?$/i;
const asctimePattern = /^[A-Z][a-z]{2} ([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d{2}):(\d{2}):(\d{2}) (\d{4})$/;
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Reads ISO forms and asctime; text without an offset is read as UTC. `undefined` when the text is no time. */
export function parseBarmanTime(text: string): BarmanTime | undefined {
  const iso = isoPattern.exec(text.trim());
  if (iso) {
    const [year, month, day, hour, minute, second] = iso.slice(1, 7).map(Number) as [
      number,
      number,
      number,
      number,
      number,
      number,
    ];
    const utc = utcMs(year, month, day, hour, minute, second);
    if (utc === undefined) return undefined;
    const micros = Number((iso[7] ?? "").padEnd(6, "0").slice(0, 6));
    const offsetMinutes = iso[8] === undefined ? undefined : parseOffset(iso[8]);
    return { epochMicros: (utc - (offsetMinutes ?? 0) * 60_000) * 1000 + micros, offsetMinutes };
  }
  const asctime = asctimePattern.exec(text.trim());
  if (!asctime) return undefined;
  const month = months.indexOf(asctime[1] ?? "") + 1;
  const [day, hour, minute, second, year] = asctime.slice(2, 7).map(Number) as [number, number, number, number, number];
  const utc = utcMs(year, month, day, hour, minute, second);
  return utc === undefined ? undefined : { epochMicros: utc * 1000, offsetMinutes: undefined };
}

/** Writes `YYYY-MM-DD HH:MM:SS.ffffff+00:00`, the fraction left out when it is zero. */
export function formatBarmanTime(time: BarmanTime): string {
  const local = time.epochMicros + (time.offsetMinutes ?? 0) * 60_000_000;
  const seconds = Math.floor(local / 1_000_000);
  const micros = local - seconds * 1_000_000;
  const [day, clock] = new Date(seconds * 1000).toISOString().slice(0, 19).split("T");
  const fraction = micros === 0 ? "" : `.${String(micros).padStart(6, "0")}`;
  return `${day} ${clock}${fraction}${time.offsetMinutes === undefined ? "" : formatOffset(time.offsetMinutes)}`;
}

/** Milliseconds since the epoch, rounded down. */
export function barmanTimeMs(time: BarmanTime): number {
  return Math.floor(time.epochMicros / 1000);
}

/** A moment in UTC from milliseconds since the epoch. */
export function barmanTimeFromMs(epochMs: number): BarmanTime {
  return { epochMicros: Math.round(epochMs * 1000), offsetMinutes: 0 };
}

function utcMs(
  year: number,
  month: number,
  day: number,
  hour: number,
  minute: number,
  second: number,
): number | undefined {
  const ms = Date.UTC(year, month - 1, day, hour, minute, second);
  const back = new Date(ms);
  // Date.UTC rolls over what the calendar does not have.
  const same = back.getUTCMonth() === month - 1 && back.getUTCDate() === day && back.getUTCHours() === hour;
  return same && minute < 60 && second < 60 ? ms : undefined;
}

function parseOffset(text: string): number {
  const match = /^([+-])(\d{2}):?(\d{2})?$/.exec(text);
  if (!match) return 0;
  const minutes = Number(match[2]) * 60 + Number(match[3] ?? 0);
  return match[1] === "-" ? -minutes : minutes;
}

function formatOffset(minutes: number): string {
  const size = Math.abs(minutes);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${minutes < 0 ? "-" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}
