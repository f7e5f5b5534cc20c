import { applyPatch, type Operation } from "rfc6902";
import type { KubeClient, ListPage, ListPageOptions, WatchEvent, WatchOptions } from "../../src/kube/kube-client.ts";
import { applyMergePatch, diffMergePatch, jsonEqual } from "../../src/kube/merge-patch.ts";
import { collectionPath, formatApiVersion, formatKey } from "../../src/kube/resource-path.ts";
import type { Clock } from "../../src/ports/clock.ts";
import {
  type DeleteOptions,
  KubeError,
  type KubeErrorKind,
  type KubeObject,
  type ListOptions,
  type ObjectKey,
  type Patch,
  type ResourceType,
  type WriteOptions,
} from "../../src/ports/kube-api.ts";
import { checkVersion, conflict, formatTime, isSelected, type LoggedEvent, translate } from "./fake-kube-rules.ts";

export type FakeVerb = "get" | "list" | "watch" | "create" | "update" | "patch" | "delete";

/** One request as the fake server sees it. */
export interface FakeRequest {
  verb: FakeVerb;
  plural: string;
  namespace?: string | undefined;
  name?: string | undefined;
  subresource?: string | undefined;
  body?: unknown;
}

/** A failure to inject: before the request is carried out, or after it (then the answer is lost). */
export interface FakeFault {
  error: KubeError;
  after?: boolean;
}

export interface FakeKubeOptions {
  clock: Clock;
  /** Kinds whose deletion only sets deletionTimestamp until `finishDeletion`, as the kubelet does for pods. @default none */
  graceful?: readonly ResourceType<KubeObject>[];
}

/** An API server in memory: versions, conflicts, status subresources, finalizers, owners, selectors, watches, faults. */
export interface FakeKubeApi extends KubeClient {
  /** Every request so far. */
  readonly requests: FakeRequest[];
  /** Decides for each request whether it fails; the last function given counts. */
  intercept(
    decide: ((request: FakeRequest) => FakeFault | undefined | Promise<FakeFault | undefined>) | undefined,
  ): void;
  /** Stores an object as it is, status included. */
  seed<T extends KubeObject>(type: ResourceType<T>, object: T): T;
  /** Reads without a request. */
  peek<T extends KubeObject>(type: ResourceType<T>, key: ObjectKey): T | undefined;
  /** All objects of a kind, without a request. */
  peekAll<T extends KubeObject>(type: ResourceType<T>, namespace?: string): T[];
  /** Removes an object that waits for its graceful end. */
  finishDeletion<T extends KubeObject>(type: ResourceType<T>, key: ObjectKey): void;
  /** Forgets old events, so that watches from before get 410. */
  compact(): void;
  /** Ends all watches, as a restarting server does. */
  breakWatches(): void;
}

/** A fault with the text and status that a server would give. */
export function fault(
  kind: KubeErrorKind,
  options: { after?: boolean; status?: number; outcomeUnknown?: boolean } = {},
): FakeFault {
  const status = options.status ?? statusOf[kind];
  const outcomeUnknown = options.outcomeUnknown ?? options.after ?? false;
  return { error: new KubeError(`injected ${kind}`, { kind, status, outcomeUnknown }), after: options.after ?? false };
}

const statusOf: Record<KubeErrorKind, number> = {
  notFound: 404,
  conflict: 409,
  alreadyExists: 409,
  invalid: 422,
  forbidden: 403,
  gone: 410,
  unavailable: 0,
  other: 418,
};

/** Creates an empty server. */
export function createFakeKubeApi(options: FakeKubeOptions): FakeKubeApi {
  return new FakeServer(options);
}

interface Collection {
  type: ResourceType<KubeObject>;
  objects: Map<string, KubeObject>;
  events: LoggedEvent[];
}

class FakeServer implements FakeKubeApi {
  readonly requests: FakeRequest[] = [];
  readonly #clock: Clock;
  readonly #graceful: ReadonlySet<string>;
  readonly #collections = new Map<string, Collection>();
  readonly #applied = new Map<string, unknown>();
  readonly #listeners = new Set<() => void>();
  #decide: Parameters<FakeKubeApi["intercept"]>[0];
  #version = 0;
  #compacted = 0;
  #uids = 0;
  #watchEpoch = 0;

  constructor(options: FakeKubeOptions) {
    this.#clock = options.clock;
    this.#graceful = new Set((options.graceful ?? []).map((type) => collectionPath(type)));
  }

  intercept(decide: Parameters<FakeKubeApi["intercept"]>[0]): void {
    this.#decide = decide;
  }

  seed<T extends KubeObject>(type: ResourceType<T>, object: T): T {
    return this.#insert(type, object, { keepStatus: true });
  }

  peek<T extends KubeObject>(type: ResourceType<T>, key: ObjectKey): T | undefined {
    const found = this.#collection(type).objects.get(formatKey(key));
    return found && (structuredClone(found) as T);
  }

  peekAll<T extends KubeObject>(type: ResourceType<T>, namespace?: string): T[] {
    return this.#select(type, namespace === undefined ? {} : { namespace });
  }

  finishDeletion<T extends KubeObject>(type: ResourceType<T>, key: ObjectKey): void {
    this.#drop(this.#collection(type), this.#find(type, key));
  }

  compact(): void {
    this.#compacted = this.#version;
    for (const collection of this.#collections.values()) collection.events = [];
  }

  breakWatches(): void {
    this.#watchEpoch++;
    this.#notify();
  }

  get<T extends KubeObject>(type: ResourceType<T>, key: ObjectKey, options: { signal?: AbortSignal } = {}): Promise<T> {
    return this.#serve({ verb: "get", plural: type.plural, ...key }, options.signal, () =>
      structuredClone(this.#find(type, key)),
    );
  }

  async list<T extends KubeObject>(type: ResourceType<T>, options: ListOptions = {}): Promise<T[]> {
    return (await this.listPage(type, options)).items;
  }

  listPage<T extends KubeObject>(type: ResourceType<T>, options: ListPageOptions = {}): Promise<ListPage<T>> {
    const request: FakeRequest = { verb: "list", plural: type.plural, namespace: options.namespace };
    return this.#serve(request, options.signal, () => {
      const items = this.#select(type, options);
      return { items, resourceVersion: String(this.#version) };
    });
  }

  create<T extends KubeObject>(type: ResourceType<T>, object: T, options: WriteOptions = {}): Promise<T> {
    const { namespace, name } = object.metadata;
    const request: FakeRequest = {
      verb: "create",
      plural: type.plural,
      namespace,
      name,
      body: structuredClone(object),
    };
    return this.#serve(request, options.signal, () => this.#insert(type, object, { keepStatus: false }));
  }

  update<T extends KubeObject>(type: ResourceType<T>, object: T, options: WriteOptions = {}): Promise<T> {
    const { namespace, name } = object.metadata;
    const key: ObjectKey = { ...(namespace ? { namespace } : {}), name: name ?? "" };
    const { subresource } = options;
    const request: FakeRequest = {
      verb: "update",
      plural: type.plural,
      ...key,
      subresource,
      body: structuredClone(object),
    };
    return this.#serve(request, options.signal, () => {
      const current = this.#find(type, key);
      checkVersion(type, current, object.metadata.resourceVersion);
      return this.#replace(type, current, object, subresource);
    });
  }

  patch<T extends KubeObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    patch: Patch,
    options: WriteOptions = {},
  ): Promise<T> {
    const { subresource } = options;
    const request: FakeRequest = {
      verb: "patch",
      plural: type.plural,
      ...key,
      subresource,
      body: structuredClone(patch),
    };
    return this.#serve(request, options.signal, () => {
      if (patch.type === "apply") return this.#apply(type, key, patch, subresource);
      const current = this.#find(type, key);
      if (patch.type === "merge") {
        checkVersion(type, current, (patch.body as Partial<KubeObject>).metadata?.resourceVersion);
        return this.#replace(type, current, applyMergePatch(current, patch.body) as T, subresource);
      }
      const next = structuredClone(current);
      const errors = applyPatch(next, structuredClone(patch.body) as Operation[]).filter(Boolean);
      if (errors.length > 0)
        throw new KubeError(`patch failed: ${errors[0]?.message}`, { kind: "invalid", status: 422 });
      return this.#replace(type, current, next, subresource);
    });
  }

  delete<T extends KubeObject>(type: ResourceType<T>, key: ObjectKey, options: DeleteOptions = {}): Promise<void> {
    return this.#serve({ verb: "delete", plural: type.plural, ...key }, options.signal, () => {
      const current = this.#find(type, key);
      if (options.uid && options.uid !== current.metadata.uid) throw conflict(type, key, "the UID differs");
      checkVersion(type, current, options.resourceVersion);
      const collection = this.#collection(type);
      const waits = this.#graceful.has(collectionPath(type)) && options.gracePeriodSeconds !== 0;
      if (!waits && !current.metadata.finalizers?.length) return this.#drop(collection, current, options.propagation);
      if (current.metadata.deletionTimestamp) return;
      const next = structuredClone(current);
      next.metadata.deletionTimestamp = formatTime(this.#clock.now());
      this.#store(collection, next, current);
    });
  }

  async *watch<T extends KubeObject>(
    type: ResourceType<T>,
    options: WatchOptions,
  ): AsyncGenerator<WatchEvent<T>, void, void> {
    const request: FakeRequest = { verb: "watch", plural: type.plural, namespace: options.namespace };
    await this.#serve(request, options.signal, () => undefined);
    options.onData?.();
    const epoch = this.#watchEpoch;
    let from = Number(options.resourceVersion);
    while (!options.signal?.aborted && this.#watchEpoch === epoch) {
      if (from < this.#compacted) throw new KubeError("watch: 410 Expired", { kind: "gone", status: 410 });
      const events = this.#collection(type).events.filter((event) => event.version > from);
      for (const event of events) {
        from = event.version;
        const seen = translate(event, options);
        if (!seen) continue;
        options.onData?.();
        yield { type: seen, object: structuredClone(event.object) as T };
      }
      if (events.length === 0) await this.#change(options.signal);
    }
  }

  async serves(type: ResourceType<KubeObject>): Promise<boolean> {
    return this.#collections.has(collectionPath(type));
  }

  async serverVersion(): Promise<string> {
    return "v1.34.0";
  }

  async close(): Promise<void> {
    this.breakWatches();
  }

  async #serve<R>(request: FakeRequest, signal: AbortSignal | undefined, work: () => R): Promise<R> {
    this.requests.push(request);
    const fault = await this.#decide?.(request);
    if (signal?.aborted)
      throw new KubeError("aborted", { kind: "unavailable", status: 0, outcomeUnknown: request.verb !== "get" });
    if (fault && !fault.after) throw fault.error;
    const result = work();
    if (fault) throw fault.error;
    return result;
  }

  #collection(type: ResourceType<KubeObject>): Collection {
    const path = collectionPath(type);
    let collection = this.#collections.get(path);
    if (!collection) {
      collection = { type, objects: new Map(), events: [] };
      this.#collections.set(path, collection);
    }
    return collection;
  }

  #find<T extends KubeObject>(type: ResourceType<T>, key: ObjectKey): T {
    const found = this.#collection(type).objects.get(formatKey(key));
    if (!found) throw new KubeError(`${type.plural} "${key.name}" not found`, { kind: "notFound", status: 404 });
    return found as T;
  }

  #select<T extends KubeObject>(type: ResourceType<T>, options: ListOptions): T[] {
    return [...this.#collection(type).objects.values()]
      .filter((object) => isSelected(object, options))
      .map((object) => structuredClone(object) as T);
  }

  #insert<T extends KubeObject>(type: ResourceType<T>, object: T, options: { keepStatus: boolean }): T {
    const next = structuredClone(object) as T & { status?: unknown; spec?: unknown };
    const metadata = next.metadata;
    if (!metadata.name && metadata.generateName)
      metadata.name = `${metadata.generateName}${(++this.#uids).toString(36).padStart(5, "0")}`;
    if (!metadata.name) throw new KubeError(`${type.kind} without a name`, { kind: "invalid", status: 422 });
    if (type.namespaced && !metadata.namespace)
      throw new KubeError(`${type.kind} without a namespace`, { kind: "invalid", status: 422 });
    const collection = this.#collection(type);
    if (collection.objects.has(formatKey(metadata))) {
      throw new KubeError(`${type.plural} "${metadata.name}" already exists`, { kind: "alreadyExists", status: 409 });
    }
    if (!options.keepStatus) delete next.status;
    metadata.uid = options.keepStatus && metadata.uid ? metadata.uid : `uid-${++this.#uids}`;
    metadata.creationTimestamp ??= formatTime(this.#clock.now());
    if (next.spec !== undefined) metadata.generation = metadata.generation ?? 1;
    next.apiVersion ??= formatApiVersion(type);
    next.kind ??= type.kind;
    this.#store(collection, next, undefined);
    return structuredClone(next);
  }

  #replace<T extends KubeObject>(type: ResourceType<T>, current: T, wanted: T, subresource: string | undefined): T {
    const was = current as T & { status?: unknown; spec?: unknown };
    const is = structuredClone(wanted) as T & { status?: unknown; spec?: unknown };
    const next = subresource === "status" ? { ...was, status: is.status } : { ...is, status: was.status };
    if (next.status === undefined) delete next.status;
    const { uid, creationTimestamp, deletionTimestamp, generation, resourceVersion } = was.metadata;
    const metadata = { ...next.metadata, uid, creationTimestamp, deletionTimestamp, generation, resourceVersion };
    const changed = { ...next, metadata: JSON.parse(JSON.stringify(metadata)) } as typeof next;
    if (generation !== undefined && !jsonEqual(was.spec, changed.spec)) changed.metadata.generation = generation + 1;
    // The server does not write, and gives no new version, when nothing differs.
    if (jsonEqual(was, changed)) return structuredClone(current);
    const collection = this.#collection(type);
    this.#store(collection, changed, current);
    if (deletionTimestamp && !changed.metadata.finalizers?.length && !this.#graceful.has(collectionPath(type)))
      this.#drop(collection, changed);
    return structuredClone(changed);
  }

  /** Fields that the manager applied before and no longer names are removed. Ownership conflicts are not modelled. */
  #apply<T extends KubeObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    patch: Extract<Patch, { type: "apply" }>,
    subresource: string | undefined,
  ): T {
    const body = structuredClone(patch.body) as T;
    const id = `${collectionPath(type)}|${formatKey(key)}|${patch.fieldManager}`;
    const removed = diffMergePatch(this.#applied.get(id) ?? {}, body) ?? {};
    this.#applied.set(id, structuredClone(body));
    const current = this.#collection(type).objects.get(formatKey(key)) as T | undefined;
    if (!current) return this.#insert(type, { ...body, metadata: { ...body.metadata, ...key } }, { keepStatus: false });
    checkVersion(type, current, body.metadata?.resourceVersion);
    return this.#replace(type, current, applyMergePatch(applyMergePatch(current, removed), body) as T, subresource);
  }

  #store(collection: Collection, object: KubeObject, previous: KubeObject | undefined): void {
    const version = ++this.#version;
    object.metadata.resourceVersion = String(version);
    collection.objects.set(formatKey(object.metadata), object);
    const type = previous ? "MODIFIED" : "ADDED";
    collection.events.push({ version, type, object: structuredClone(object), previous });
    this.#notify();
  }

  #drop(collection: Collection, object: KubeObject, propagation?: DeleteOptions["propagation"]): void {
    const version = ++this.#version;
    collection.objects.delete(formatKey(object.metadata));
    const last = structuredClone(object);
    last.metadata.resourceVersion = String(version);
    collection.events.push({ version, type: "DELETED", object: last, previous: object });
    if (propagation !== "Orphan") this.#collectGarbage(object.metadata.uid);
    this.#notify();
  }

  #collectGarbage(ownerUid: string | undefined): void {
    for (const collection of this.#collections.values()) {
      for (const object of [...collection.objects.values()]) {
        if (object.metadata.ownerReferences?.some((owner) => owner.uid === ownerUid)) this.#drop(collection, object);
      }
    }
  }

  #notify(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  #change(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const finish = () => {
        this.#listeners.delete(finish);
        signal?.removeEventListener("abort", finish);
        resolve();
      };
      this.#listeners.add(finish);
      signal?.addEventListener("abort", finish, { once: true });
      if (signal?.aborted) finish();
    });
  }
}
