import { expect, test } from "vitest";
import { StorePatience } from "../../../../src/archive/base/store-patience.ts";
import type { Clock } from "../../../../src/ports/clock.ts";
import { ObjectStoreError, type ObjectStoreErrorKind } from "../../../../src/ports/object-store.ts";
import { captureLogs } from "../../../support/log-capture.ts";

const failure = (kind: ObjectStoreErrorKind) =>
  new ObjectStoreError("PUT s3://b/k: told to", { kind, operation: "PUT", key: "k" });

/** Runs a request that always fails; gives the pauses that were made. */
async function pausesOf(error: Error, patienceMs: number, signal = new AbortController().signal): Promise<number[]> {
  const pauses: number[] = [];
  const clock: Clock = { now: () => 0, monotonicMs: () => 0, sleep: async (ms) => void pauses.push(ms) };
  const patience = new StorePatience({ clock, logger: captureLogs().logger, patienceMs, signal });
  await expect(patience.run(() => Promise.reject(error))).rejects.toBe(error);
  return pauses;
}

test("pauses grow to half a minute, and their sum stays below the patience", async () => {
  expect(await pausesOf(failure("unavailable"), 100_000)).toEqual([1, 2, 4, 8, 16, 30, 30].map((s) => s * 1000));
  expect(await pausesOf(failure("corrupt"), 3_000)).toEqual([1000, 2000]);
  expect(await pausesOf(failure("unavailable"), 0)).toEqual([]);
});

test.each<ObjectStoreErrorKind>(["denied", "notFound", "bucketMissing", "conflict", "invalid"])(
  "what is %s is not asked again",
  async (kind) => {
    expect(await pausesOf(failure(kind), 100_000)).toEqual([]);
  },
);

test("failures that are not the store's, and those of a backup that has ended, are not asked again", async () => {
  expect(await pausesOf(new Error("disk"), 100_000)).toEqual([]);
  expect(await pausesOf(failure("unavailable"), 100_000, AbortSignal.abort())).toEqual([]);
});
