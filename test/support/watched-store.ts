import { type ObjectStore, ObjectStoreError, type ObjectStoreErrorKind } from "../../src/ports/object-store.ts";

export type StoreCall = "put" | "putStream" | "get" | "head" | "list" | "remove";

/** A store whose calls a test can watch, hold up, and let fail, before or after they took effect. */
export interface WatchedStore extends ObjectStore {
  readonly calls: { call: StoreCall; key: string }[];
  /** Calls that have not ended. */
  readonly pending: number;
  /** Runs before a call; what it throws is the call's failure and the store is not asked. */
  before: (call: StoreCall, key: string) => void | Promise<void>;
  /** Runs after a call that succeeded; what it throws hides the success. */
  after: (call: StoreCall, key: string) => void | Promise<void>;
}

/** Wraps a store. */
export function watchStore(inner: ObjectStore): WatchedStore {
  let pending = 0;
  const watched: WatchedStore = {
    calls: [],
    get pending() {
      return pending;
    },
    before: () => undefined,
    after: () => undefined,
    location: inner.location,
    get conditionalCreate() {
      return inner.conditionalCreate;
    },
    put: (key, body, options) => around("put", key, () => inner.put(key, body, options)),
    putStream: (key, body, options) => around("putStream", key, () => inner.putStream(key, body, options)),
    get: (key, options) => around("get", key, () => inner.get(key, options)),
    head: (key, options) => around("head", key, () => inner.head(key, options)),
    async *list(prefix, options) {
      pending += 1;
      try {
        await watched.before("list", prefix);
        watched.calls.push({ call: "list", key: prefix });
        yield* inner.list(prefix, options);
      } finally {
        pending -= 1;
      }
    },
    remove: (keys, options) => around("remove", keys[0] ?? "", () => inner.remove(keys, options)),
    checkBucket: (options) => inner.checkBucket(options),
    abortStaleUploads: (prefix, olderThanMs) => inner.abortStaleUploads(prefix, olderThanMs),
    close: () => inner.close(),
  };
  async function around<T>(call: StoreCall, key: string, run: () => Promise<T>): Promise<T> {
    pending += 1;
    try {
      watched.calls.push({ call, key });
      await watched.before(call, key);
      const result = await run();
      await watched.after(call, key);
      return result;
    } finally {
      pending -= 1;
    }
  }
  return watched;
}

/** A failure as a store reports it. */
export function storeFailure(kind: ObjectStoreErrorKind, operation = "PUT", httpStatus?: number): ObjectStoreError {
  const status = httpStatus === undefined ? "" : ` HTTP ${httpStatus}`;
  return new ObjectStoreError(`${operation} s3://test/key:${status} ${kind}`, {
    kind,
    operation,
    key: "key",
    httpStatus,
  });
}
