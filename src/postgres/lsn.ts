/** A position in the write-ahead log, as an unsigned 64-bit integer. */
export type Lsn = bigint;

/** Reads the `X/Y` form; `undefined` when the text is not one. */
export function parseLsn(text: string): Lsn | undefined {
  const match = /^([0-9A-Fa-f]{1,8})\/([0-9A-Fa-f]{1,8})$/.exec(text);
  if (!match) return undefined;
  return (BigInt(`0x${match[1]}`) << 32n) | BigInt(`0x${match[2]}`);
}

/** Writes the form PostgreSQL prints: upper-case hexadecimal without leading zeros. */
export function formatLsn(lsn: Lsn): string {
  return `${(lsn >> 32n).toString(16).toUpperCase()}/${(lsn & 0xffffffffn).toString(16).toUpperCase()}`;
}

/** Order of two positions given as text; `undefined` when either is unreadable, so that nobody takes garbage for "behind". */
export function compareLsn(left: string, right: string): -1 | 0 | 1 | undefined {
  const a = parseLsn(left);
  const b = parseLsn(right);
  if (a === undefined || b === undefined) return undefined;
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** Bytes from `from` to `to`; negative when `to` is behind. `undefined` when either is unreadable. */
export function lsnDistance(from: string, to: string): bigint | undefined {
  const a = parseLsn(from);
  const b = parseLsn(to);
  return a === undefined || b === undefined ? undefined : b - a;
}
