/** A WAL position as PostgreSQL writes it. */
export function formatLsn(position: number): string {
  return `0/${position.toString(16).toUpperCase()}`;
}
