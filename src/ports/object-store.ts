// What the programs need of an object store. A failure is always an `ObjectStoreError`; only a store that said so for
// certain makes one of kind `notFound`, everything unclear is `unavailable`.

/**
 * `notFound`: the object is certainly not there. `bucketMissing`: its bucket or container is not. `denied`: the store refuses the
 * credentials. `conflict`: an object of that name is there already. `corrupt`: the bytes that arrived are not those that were sent.
 * `invalid`: the store will refuse the same request again. `unavailable`: worth another try, and no statement about anything else.
 */
export type ObjectStoreErrorKind =
  | "notFound"
  | "bucketMissing"
  | "denied"
  | "conflict"
  | "corrupt"
  | "invalid"
  | "unavailable";

/** A failure of an object store. The message names the operation, the key and the cause. */
export class ObjectStoreError extends Error {
  override readonly name = "ObjectStoreError";
  readonly kind: ObjectStoreErrorKind;
  /** For example `PUT`. */
  readonly operation: string;
  readonly key: string;
  readonly httpStatus: number | undefined;

  constructor(
    message: string,
    fields: {
      kind: ObjectStoreErrorKind;
      operation: string;
      key: string;
      httpStatus?: number | undefined;
      cause?: unknown;
    },
  ) {
    super(message, { cause: fields.cause });
    this.kind = fields.kind;
    this.operation = fields.operation;
    this.key = fields.key;
    this.httpStatus = fields.httpStatus;
  }

  /** Whether the same call may succeed later without anybody changing its input. */
  get retryable(): boolean {
    return this.kind === "unavailable" || this.kind === "denied" || this.kind === "corrupt";
  }
}

/** The ObjectStoreError among an error and its causes, of one of the given kinds if any are given. */
export function findObjectStoreError(error: unknown, ...kinds: ObjectStoreErrorKind[]): ObjectStoreError | undefined {
  for (let current = error, depth = 0; current instanceof Error && depth < 10; current = current.cause, depth++) {
    if (current instanceof ObjectStoreError && (kinds.length === 0 || kinds.includes(current.kind))) return current;
  }
  return undefined;
}

export interface ObjectInfo {
  key: string;
  size: number;
  /** Milliseconds since the epoch. */
  modifiedMs: number | undefined;
}

/** Facts of one object that a listing does not show. */
export interface ObjectHead extends ObjectInfo {
  /** Own metadata, names in lower case; empty where the store keeps none. */
  metadata: Readonly<Record<string, string>>;
}

export interface PutOptions {
  /** Fails with `conflict` when the key exists, as far as the store can tell atomically. @default false */
  ifAbsent?: boolean;
  tags?: Readonly<Record<string, string>>;
  /** Names in lower case, letters, digits and hyphens. */
  metadata?: Readonly<Record<string, string>>;
  signal?: AbortSignal;
}

export interface PutStreamOptions extends PutOptions {
  /** Bytes of a part; a part is held in memory until the store has it. */
  partBytes?: number;
  /** Parts under way at once. @default 2 */
  concurrency?: number;
  /** Asked when a part failed so many times; may wait before it answers. @default a failed part fails the upload */
  again?: (error: unknown, failures: number) => Promise<boolean>;
}

/** An upload that the store confirmed. */
export interface PutResult {
  size: number;
  /** What was compared with the store's answer, for example `md5:…`. */
  checksum: string;
}

export interface ObjectBody {
  info: ObjectHead;
  /** Ends early only by an error. */
  chunks: AsyncIterable<Uint8Array>;
  /** Gives back what the body holds when it is not read to its end; does nothing otherwise. */
  cancel(): void;
}

export interface ObjectPage {
  objects: readonly ObjectInfo[];
  /** With a delimiter: prefixes one level below, the delimiter included. */
  prefixes: readonly string[];
}

export interface ListOptions {
  /** Groups keys by what follows the prefix up to it. */
  delimiter?: "/";
  /** Only keys after this one. */
  startAfter?: string;
  /** Largest number of entries in a page. */
  pageSize?: number;
  signal?: AbortSignal;
}

/** One bucket, container or folder. */
export interface ObjectStore {
  /** As a URL without credentials, for messages: scheme and bucket. */
  readonly location: string;
  /** Whether `ifAbsent` is atomic here; `undefined` until the store has shown it. */
  readonly conditionalCreate: boolean | undefined;
  /** Uploads bytes that are at hand. Resolves only when the store confirmed their checksum. */
  put(key: string, body: readonly Uint8Array[], options?: PutOptions): Promise<PutResult>;
  /** Uploads a stream of unknown length in parts of bounded memory; leaves nothing behind when it fails. */
  putStream(key: string, body: AsyncIterable<Uint8Array>, options?: PutStreamOptions): Promise<PutResult>;
  /** `from` skips bytes at the begin; the size told is then that of the rest. */
  get(key: string, options?: { from?: number; signal?: AbortSignal }): Promise<ObjectBody>;
  /** `undefined` when the object is certainly not there. */
  head(key: string, options?: { signal?: AbortSignal }): Promise<ObjectHead | undefined>;
  /** Pages in the order of the keys. */
  list(prefix: string, options?: ListOptions): AsyncIterable<ObjectPage>;
  /** Removes objects; those that are not there are no failure. */
  remove(keys: readonly string[], options?: { signal?: AbortSignal }): Promise<void>;
  /** Whether the bucket is there; creates it when asked. */
  checkBucket(options?: { create?: boolean; signal?: AbortSignal }): Promise<"present" | "created" | "missing">;
  /** Ends uploads that were begun under a prefix and never finished, when older than this; returns their number. */
  abortStaleUploads(prefix: string, olderThanMs: number): Promise<number>;
  close(): void;
}

/** Gathers all entries of a listing; for prefixes known to be small. */
export async function listAll(store: ObjectStore, prefix: string, options?: ListOptions): Promise<ObjectPage> {
  const objects: ObjectInfo[] = [];
  const prefixes: string[] = [];
  for await (const page of store.list(prefix, options)) {
    objects.push(...page.objects);
    prefixes.push(...page.prefixes);
  }
  return { objects, prefixes };
}
