import { ObjectStoreError } from "../ports/object-store.ts";

const atOnce = 16;

/** Removes objects one by one, some at once; those that are not there are no failure. */
export async function removeEach(keys: readonly string[], remove: (key: string) => Promise<unknown>): Promise<void> {
  const waiting = keys[Symbol.iterator]();
  const lanes = Array.from({ length: Math.min(atOnce, keys.length) }, async () => {
    for (const key of waiting) {
      try {
        await remove(key);
      } catch (error) {
        if (!(error instanceof ObjectStoreError) || error.kind !== "notFound") throw error;
      }
    }
  });
  // All of them come to rest before the first failure is told.
  for (const lane of await Promise.allSettled(lanes)) if (lane.status === "rejected") throw lane.reason;
}
