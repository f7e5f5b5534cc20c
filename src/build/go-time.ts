/** A time as Go prints it in UTC (`2027-02-27 23:58:06 +0000 UTC`); whole seconds. */
export function formatGoTime(ms: number): string {
  const [date, time] = new Date(ms).toISOString().split("T");
  return `${date} ${time?.slice(0, 8)} +0000 UTC`;
}
