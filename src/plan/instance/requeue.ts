/** Longest time between two passes; events make most of them come sooner. */
export const resyncMs = 10_000;

/** Pause while something outside is waited for whose coming no event tells. */
export const soonMs = 1_000;

/** Pause while the definition is held back; its next change comes sooner. */
export const heldBackMs = 5_000;

/** Delay before a pass is repeated after errors in a row: quick at first, because a promotion may hang on it. */
export function errorDelayMs(failures: number): number {
  return Math.min(resyncMs, 250 * 2 ** Math.max(0, failures - 1));
}
