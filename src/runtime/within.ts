import type { Clock } from "../ports/clock.ts";

/** What comes of the work, or something else when it takes longer than that; the work itself goes on. */
export async function within<T>(
  clock: Pick<Clock, "sleep">,
  limitMs: number,
  work: Promise<T>,
  otherwise: T,
): Promise<T> {
  const done = new AbortController();
  const limit = clock.sleep(limitMs, done.signal).then(
    () => otherwise,
    () => otherwise,
  );
  try {
    return await Promise.race([work, limit]);
  } finally {
    done.abort();
  }
}
