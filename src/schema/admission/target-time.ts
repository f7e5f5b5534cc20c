const form =
  /^(\d{4})-(\d{2})-(\d{2})[ T](\d{2}):(\d{2}):(\d{2})(?:\.\d{1,9})?(?:Z|[+-](\d{2})(?::?(\d{2}))?(?::?(\d{2}))?)?$/;

/** Whether a text is a time stamp of PostgreSQL or of RFC 3339, with or without a zone. */
export function isTargetTime(text: string): boolean {
  const match = form.exec(text);
  if (!match) return false;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, zoneHour = 0, zoneMinute = 0] = match
    .slice(1)
    .map((part) => Number(part ?? 0));
  const daysInMonth = new Date(Date.UTC(year, month, 0)).getUTCDate();
  if (month < 1 || month > 12 || day < 1 || day > daysInMonth) return false;
  return hour < 24 && minute < 60 && second < 60 && zoneHour < 24 && zoneMinute < 60;
}
