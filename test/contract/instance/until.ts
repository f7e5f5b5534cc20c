import { setTimeout as sleep } from "node:timers/promises";

/** Waits until a condition gives a value; fails with its name after the limit. */
export async function until<T>(what: string, get: () => Promise<T | undefined | false>, limitMs = 60_000): Promise<T> {
  const end = Date.now() + limitMs;
  let last: unknown;
  for (;;) {
    try {
      const value = await get();
      if (value !== undefined && value !== false) return value;
    } catch (error) {
      last = error;
    }
    if (Date.now() > end) throw new Error(`${what}: not within ${limitMs} ms`, { cause: last });
    await sleep(20);
  }
}
