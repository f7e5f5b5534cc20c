/** RFC 3339 with exactly six fractional digits, as the status fields of the primary's changes carry it. */
export function formatMicroTime(at: Date): string {
  return at.toISOString().replace(/\.(\d{3})Z$/, ".$1000Z");
}

/** RFC 3339 in whole seconds, as conditions carry it. */
export function formatSeconds(at: Date): string {
  return at.toISOString().replace(/\.\d{3}Z$/, "Z");
}
