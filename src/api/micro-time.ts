/** A time as the Cluster's and the Lease's timestamps carry it: RFC 3339 in UTC with six fractional digits. */
export function formatMicroTime(epochMs: number): string {
  return new Date(epochMs).toISOString().replace(/\.(\d{3})Z$/, ".$1000Z");
}
