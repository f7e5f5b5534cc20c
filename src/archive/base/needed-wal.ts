import { findMissingWal, listNeededWal, type NeededWal } from "../../barman/needed-wal.ts";
import type { ServerKeys } from "../../barman/object-keys.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import type { ObjectStore } from "../../ports/object-store.ts";
import { ObjectStoreError } from "../../ports/object-store.ts";
import { BaseError } from "./base-error.ts";

const firstWaitMs = 500;
const longestWaitMs = 15_000;
/** How long the archive is given before the primary is asked to close its segment (again). */
const switchEveryMs = 10_000;
const logEveryMs = 60_000;

export interface WalWait {
  store: ObjectStore;
  keys: ServerKeys;
  clock: Clock;
  logger: Logger;
  timeoutMs: number;
  signal: AbortSignal;
  /** Makes the primary close its current segment. */
  switchWal: ((signal: AbortSignal) => Promise<void>) | undefined;
}

/** The needed segments that the archive does not hold, in order. Each one is looked for: uploads may leave holes. */
export async function readMissingWal(
  store: ObjectStore,
  keys: ServerKeys,
  needed: NeededWal,
  signal?: AbortSignal,
): Promise<string[]> {
  const folders = new Set(
    listNeededWal(needed).flatMap(({ alternatives }) => alternatives.map((name) => keys.walFolder(name))),
  );
  const names: string[] = [];
  for (const folder of folders) {
    for await (const page of store.list(folder, signal === undefined ? {} : { signal })) {
      for (const { key } of page.objects) names.push(key.slice(key.lastIndexOf("/") + 1));
    }
  }
  return findMissingWal(needed, names);
}

/**
 * Waits until the archive holds all WAL that a backup needs to become consistent. A standby's backup ends in a segment that only
 * its primary can close; without work and without this request it would stay open until the archive time-out.
 */
export async function waitForWal(needed: NeededWal, wait: WalWait): Promise<void> {
  const start = wait.clock.monotonicMs();
  let switched = Number.NEGATIVE_INFINITY;
  let logged = start;
  for (let pause = firstWaitMs; ; pause = Math.min(pause * 2, longestWaitMs)) {
    const missing = await lookOnce(needed, wait);
    if (missing?.length === 0) return;
    const now = wait.clock.monotonicMs();
    if (now - start > wait.timeoutMs) throw timeout(missing, wait);
    if (wait.switchWal && now - switched >= switchEveryMs) {
      switched = now;
      await askForSwitch(wait.switchWal, wait);
    }
    if (now - logged >= logEveryMs) {
      logged = now;
      wait.logger.info("waiting for the archive to hold the WAL of the base backup", describe(missing));
    }
    await wait.clock.sleep(pause, wait.signal);
  }
}

/** `undefined` when the store gave no answer: the backup is complete, and worth waiting for. */
async function lookOnce(needed: NeededWal, wait: WalWait): Promise<string[] | undefined> {
  try {
    return await readMissingWal(wait.store, wait.keys, needed, wait.signal);
  } catch (error) {
    if (!(error instanceof ObjectStoreError) || !error.retryable || wait.signal.aborted) throw error;
    wait.logger.warning("cannot look for the WAL of the base backup", { err: error.message });
    return undefined;
  }
}

async function askForSwitch(switchWal: NonNullable<WalWait["switchWal"]>, wait: WalWait): Promise<void> {
  try {
    await switchWal(wait.signal);
  } catch (error) {
    wait.signal.throwIfAborted();
    const message = error instanceof Error ? error.message : String(error);
    wait.logger.warning("cannot make the primary close its WAL segment", { err: message });
  }
}

function describe(missing: readonly string[] | undefined): Record<string, unknown> {
  return missing ? { missing: missing.length, first: missing[0] } : { missing: "unknown" };
}

function timeout(missing: readonly string[] | undefined, { timeoutMs, keys, store }: WalWait): BaseError {
  const what = missing ? `${missing.length} segments, the first being ${missing[0]}` : "the store gives no answer";
  return new BaseError(
    missing ? "walMissing" : "unavailable",
    `the archive ${store.location}/${keys.walsPrefix} lacks WAL of the base backup after ${Math.round(timeoutMs / 1000)} s: ${what}; check that WAL archiving works`,
  );
}
