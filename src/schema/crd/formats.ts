/** Text formats that the API server checks, and what they are called in errors. */
export const formats = {
  byte: { name: "base64 text", test: isBase64 },
  "date-time": { name: "a time in RFC 3339 form, such as 2026-01-31T12:00:00Z", test: isDateTime },
} as const;

function isBase64(text: string): boolean {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);
}

function isDateTime(text: string): boolean {
  const match = /^(\d{4})-(\d{2})-(\d{2})t(\d{2}):(\d{2}):(\d{2})(\.\d+)?(z|[+-]\d{2}:\d{2})$/i.exec(text);
  if (!match) return false;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number);
  const isDate = month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month);
  return isDate && hour <= 23 && minute <= 59 && second <= 59;
}

function daysIn(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}
