let anchorMs = 0;
let anchorTick = 0n;

/**
 * Wall-clock time as RFC 3339 text with up to nine digits. The system clock gives milliseconds; the digits below come from
 * the monotonic counter since an anchor, which is taken anew whenever the two drift apart (clock set, machine suspended).
 */
export function wallClockNanos(): string {
  const nowMs = Date.now();
  const tick = process.hrtime.bigint();
  let nanos = BigInt(anchorMs) * 1_000_000n + (tick - anchorTick);
  const driftMs = Number(nanos / 1_000_000n) - nowMs;
  if (driftMs > 1 || driftMs < -1) {
    anchorMs = nowMs;
    anchorTick = tick;
    nanos = BigInt(nowMs) * 1_000_000n;
  }
  return formatNanos(nanos);
}

/** RFC 3339 text of nanoseconds since the epoch, trailing zeros of the fraction left out. */
export function formatNanos(nanos: bigint): string {
  const seconds = new Date(Number(nanos / 1_000_000_000n) * 1000).toISOString().slice(0, 19);
  const fraction = (nanos % 1_000_000_000n).toString().padStart(9, "0").replace(/0+$/, "");
  return fraction ? `${seconds}.${fraction}Z` : `${seconds}Z`;
}
