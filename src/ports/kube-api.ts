import type { ObjectMeta } from "../api/generated/kubernetes.ts";

/** Any object of the Kubernetes API. */
export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
}

/** Names one kind for requests; `T` is its object type. */
export interface ResourceType<T extends KubeObject> {
  /** Empty for the core group. */
  group: string;
  version: string;
  kind: string;
  plural: string;
  namespaced: boolean;
  /** Only carries the type; never set. */
  readonly __object?: T;
}

/** Name of one object; `namespace` is absent for cluster-scoped kinds. */
export interface ObjectKey {
  namespace?: string;
  name: string;
}

export interface ListOptions {
  /** All namespaces when absent. */
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  signal?: AbortSignal;
}

export interface WriteOptions {
  /** For example `status` or `scale`. */
  subresource?: string;
  signal?: AbortSignal;
}

export type Patch =
  | { type: "merge"; body: unknown }
  | { type: "json"; body: readonly unknown[] }
  | { type: "apply"; body: unknown; fieldManager: string; force?: boolean };

export interface DeleteOptions {
  propagation?: "Foreground" | "Background" | "Orphan";
  uid?: string;
  resourceVersion?: string;
  gracePeriodSeconds?: number;
  signal?: AbortSignal;
}

/** Live (uncached) requests to the API server. Failures are `KubeError`s. */
export interface KubeApi {
  get<T extends KubeObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    options?: { signal?: AbortSignal; timeoutMs?: number },
  ): Promise<T>;
  list<T extends KubeObject>(type: ResourceType<T>, options?: ListOptions): Promise<T[]>;
  create<T extends KubeObject>(type: ResourceType<T>, object: T, options?: WriteOptions): Promise<T>;
  /** Full update; the object's resourceVersion is the precondition. */
  update<T extends KubeObject>(type: ResourceType<T>, object: T, options?: WriteOptions): Promise<T>;
  patch<T extends KubeObject>(type: ResourceType<T>, key: ObjectKey, patch: Patch, options?: WriteOptions): Promise<T>;
  delete<T extends KubeObject>(type: ResourceType<T>, key: ObjectKey, options?: DeleteOptions): Promise<void>;
}

/** How a caller may react to a failed request. `unavailable` (network, 429, 5xx, time-out) never means that the object is absent. */
export type KubeErrorKind =
  | "notFound"
  | "conflict"
  | "alreadyExists"
  | "invalid"
  | "forbidden"
  | "gone"
  | "unavailable"
  | "other";

export class KubeError extends Error {
  override readonly name = "KubeError";
  readonly kind: KubeErrorKind;
  /** HTTP status, 0 when no answer came. */
  readonly status: number;
  /** True when the request may have been carried out although no answer came. */
  readonly outcomeUnknown: boolean;
  readonly retryAfterMs: number | undefined;
  /** True when the namespace is being deleted, which nothing can stop: nothing will be made in it any more. */
  readonly namespaceTerminating: boolean;

  constructor(
    message: string,
    fields: {
      kind: KubeErrorKind;
      status: number;
      outcomeUnknown?: boolean;
      retryAfterMs?: number;
      namespaceTerminating?: boolean;
      cause?: unknown;
    },
  ) {
    super(message, { cause: fields.cause });
    this.kind = fields.kind;
    this.status = fields.status;
    this.outcomeUnknown = fields.outcomeUnknown ?? false;
    this.retryAfterMs = fields.retryAfterMs;
    this.namespaceTerminating = fields.namespaceTerminating ?? false;
  }
}

/** Whether an error is a KubeError of one of the given kinds. */
export function isKubeError(error: unknown, ...kinds: KubeErrorKind[]): error is KubeError {
  return error instanceof KubeError && (kinds.length === 0 || kinds.includes(error.kind));
}

export type StoreEvent<T> = { type: "added" | "updated"; object: T; previous?: T } | { type: "deleted"; object: T };

/** A local copy of one kind, kept current by list and watch. Objects are shared: never change them. */
export interface Store<T extends KubeObject> {
  readonly type: ResourceType<T>;
  get(key: ObjectKey): T | undefined;
  list(namespace?: string): readonly T[];
  /** Resolves after the first complete list. */
  synced(signal?: AbortSignal): Promise<void>;
  /** Milliseconds since the server was last heard of; infinite before the first list. */
  staleForMs(): number;
  /** Calls back for each change from now on; returns the way to stop. */
  subscribe(handler: (event: StoreEvent<T>) => void): () => void;
  /** Makes the store at least as new as an object that this process has just written, so that it reads its own writes. */
  observeWrite(object: T): void;
}
