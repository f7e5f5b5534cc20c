import type { Clock, Random } from "../ports/clock.ts";
import type { KubeApi, KubeObject, ObjectKey, Patch, ResourceType } from "../ports/kube-api.ts";
import { isKubeError, KubeError } from "../ports/kube-api.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import type { KubeConnection } from "./connection.ts";
import { errorFromWatchStatus, type StatusBody } from "./error-classification.ts";
import { createHttpTransport, type HttpTransport } from "./http-transport.ts";
import { readLines } from "./json-lines.ts";
import type { KubeClient, ListPage, ListPageOptions, WatchEvent, WatchOptions } from "./kube-client.ts";
import { createRateLimiter } from "./rate-limiter.ts";
import { countRequests, type RequestCounts } from "./request-counts.ts";
import { createRequester, type Requester } from "./requester.ts";
import { collectionPath, formatApiVersion, formatKey, groupPath, objectPath } from "./resource-path.ts";

export interface KubeApiOptions {
  /** @default the system's clock */
  clock?: Clock;
  /** @default the system's random values */
  random?: Random;
  /** @default "cnpg-ts" */
  userAgent?: string;
  /** Bound for one request including its repetitions. @default 30000 */
  requestTimeoutMs?: number;
  /** @default 10000 */
  connectTimeoutMs?: number;
  /** Connections for short requests. @default 32 */
  maxConnections?: number;
  /** Requests a second on average, and at once. @default 100 and 200 */
  requestsPerSecond?: number;
  requestBurst?: number;
  /** Objects in one page of a list. @default 500 */
  pageSize?: number;
  /** Where requests are counted by their answers. @default - nowhere */
  counts?: RequestCounts;
  /** For tests. @default HTTP over undici */
  transport?: HttpTransport;
}

/** A client for one API server; `close` it at the end. */
export function createKubeApi(connection: KubeConnection, options: KubeApiOptions = {}): KubeClient {
  const clock = options.clock ?? systemClock;
  const direct =
    options.transport ??
    createHttpTransport(connection, {
      userAgent: options.userAgent ?? "cnpg-ts",
      connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
      maxConnections: options.maxConnections ?? 32,
    });
  const { counts } = options;
  const transport = counts ? countRequests(direct, new URL(connection.server).host, counts) : direct;
  const requester = createRequester({
    transport,
    clock,
    random: options.random ?? systemRandom,
    timeoutMs: options.requestTimeoutMs ?? 30_000,
    limiter: createRateLimiter({
      perSecond: options.requestsPerSecond ?? 100,
      burst: options.requestBurst ?? 200,
      clock,
    }),
  });
  return new HttpKubeClient(requester, transport, options.pageSize ?? 500);
}

class HttpKubeClient implements KubeClient {
  readonly #requester: Requester;
  readonly #transport: HttpTransport;
  readonly #pageSize: number;

  constructor(requester: Requester, transport: HttpTransport, pageSize: number) {
    this.#requester = requester;
    this.#transport = transport;
    this.#pageSize = pageSize;
  }

  async get<T extends KubeObject>(type: ResourceType<T>, key: ObjectKey, options: Parameters<KubeApi["get"]>[2] = {}) {
    return (await this.#requester.json({
      what: describe("get", type, key),
      method: "GET",
      path: objectPath(type, key),
      ...options,
    })) as T;
  }

  async list<T extends KubeObject>(type: ResourceType<T>, options: Parameters<KubeApi["list"]>[1] = {}): Promise<T[]> {
    const items: T[] = [];
    let next: string | undefined;
    try {
      do {
        const page: ListPage<T> = await this.#page(type, {
          ...options,
          limit: this.#pageSize,
          ...(next ? { continue: next } : {}),
          repeat: true,
        });
        items.push(...page.items);
        next = page.continue;
      } while (next);
      return items;
    } catch (error) {
      if (!isKubeError(error, "gone") || items.length === 0) throw error;
      // The snapshot behind the pages was compacted away; one answer without pages needs none.
      return (await this.#page(type, { ...options, repeat: true })).items;
    }
  }

  async listPage<T extends KubeObject>(type: ResourceType<T>, options: ListPageOptions = {}): Promise<ListPage<T>> {
    return this.#page(type, { ...options, repeat: false });
  }

  async create<T extends KubeObject>(type: ResourceType<T>, object: T, options: Parameters<KubeApi["create"]>[2] = {}) {
    const { namespace, name } = object.metadata;
    if (type.namespaced && !namespace) throw new Error(`cannot create ${type.kind} ${name} without a namespace`);
    const path = options.subresource
      ? objectPath(type, { ...(namespace ? { namespace } : {}), name: name ?? "" }, options.subresource)
      : collectionPath(type, namespace);
    return (await this.#requester.json({
      what: describe("create", type, object.metadata),
      method: "POST",
      path,
      body: withKind(type, object),
      signal: options.signal,
    })) as T;
  }

  async update<T extends KubeObject>(type: ResourceType<T>, object: T, options: Parameters<KubeApi["update"]>[2] = {}) {
    const { namespace, name } = object.metadata;
    return (await this.#requester.json({
      what: describe("update", type, object.metadata, options.subresource),
      method: "PUT",
      path: objectPath(type, { ...(namespace ? { namespace } : {}), name: name ?? "" }, options.subresource),
      body: withKind(type, object),
      signal: options.signal,
    })) as T;
  }

  async patch<T extends KubeObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    patch: Patch,
    options: Parameters<KubeApi["patch"]>[3] = {},
  ) {
    return (await this.#requester.json({
      what: describe("patch", type, key, options.subresource),
      method: "PATCH",
      path: objectPath(type, key, options.subresource),
      query:
        patch.type === "apply" ? { fieldManager: patch.fieldManager, ...(patch.force ? { force: "true" } : {}) } : {},
      contentType: patchContentTypes[patch.type],
      body: patch.type === "apply" ? withKind(type, patch.body as KubeObject) : patch.body,
      signal: options.signal,
    })) as T;
  }

  async delete<T extends KubeObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    options: Parameters<KubeApi["delete"]>[2] = {},
  ) {
    const { propagation, uid, resourceVersion, gracePeriodSeconds } = options;
    const preconditions = { ...(uid ? { uid } : {}), ...(resourceVersion ? { resourceVersion } : {}) };
    await this.#requester.json({
      what: describe("delete", type, key),
      method: "DELETE",
      path: objectPath(type, key),
      body: {
        apiVersion: "v1",
        kind: "DeleteOptions",
        propagationPolicy: propagation ?? "Background",
        ...(Object.keys(preconditions).length > 0 ? { preconditions } : {}),
        ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
      },
      signal: options.signal,
    });
  }

  async *watch<T extends KubeObject>(
    type: ResourceType<T>,
    options: WatchOptions,
  ): AsyncGenerator<WatchEvent<T>, void, void> {
    const facts = { what: describe("watch", type, options), write: false };
    const body = await this.#requester.stream({
      what: facts.what,
      path: collectionPath(type, options.namespace),
      query: {
        ...selectors(options),
        watch: "true",
        allowWatchBookmarks: "true",
        resourceVersion: options.resourceVersion,
        timeoutSeconds: String(options.timeoutSeconds),
      },
      signal: options.signal,
    });
    // The beginning of the answer is a sign of life too.
    options.onData?.();
    try {
      for await (const { text, truncated } of readLines(body, options.onData)) {
        if (truncated) throw unreadable(facts.what, "ended within a line");
        yield parseWatchEvent<T>(facts, text);
      }
    } catch (error) {
      throw this.#requester.failure(facts, error);
    }
  }

  async serves(type: ResourceType<KubeObject>, options: { signal?: AbortSignal } = {}): Promise<boolean> {
    try {
      const answer = (await this.#requester.json({
        what: `discover ${groupPath(type)}`,
        method: "GET",
        path: groupPath(type),
        signal: options.signal,
      })) as { resources?: { name: string }[] };
      return (answer.resources ?? []).some((resource) => resource.name === type.plural);
    } catch (error) {
      // Here a plain 404 is the server's word that it does not know the group.
      if (isKubeError(error) && error.status === 404) return false;
      throw error;
    }
  }

  async serverVersion(options: { signal?: AbortSignal } = {}): Promise<string> {
    const answer = await this.#requester.json({
      what: "get version",
      method: "GET",
      path: "/version",
      signal: options.signal,
    });
    return (answer as { gitVersion: string }).gitVersion;
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  async #page<T extends KubeObject>(
    type: ResourceType<T>,
    options: ListPageOptions & { repeat: boolean },
  ): Promise<ListPage<T>> {
    const answer = (await this.#requester.json({
      what: describe("list", type, options),
      method: "GET",
      path: collectionPath(type, options.namespace),
      query: {
        ...selectors(options),
        limit: options.limit === undefined ? undefined : String(options.limit),
        continue: options.continue,
      },
      signal: options.signal,
      timeoutMs: options.timeoutMs,
      repeat: options.repeat,
    })) as { metadata?: { resourceVersion?: string; continue?: string }; items?: T[] };
    const { resourceVersion, continue: next } = answer.metadata ?? {};
    // An answer without these is not from an API server; an empty list must never be invented.
    if (!resourceVersion || !Array.isArray(answer.items))
      throw unreadable(describe("list", type, options), "is no list");
    return {
      items: answer.items.map((item) => withKind(type, item)),
      resourceVersion,
      ...(next ? { continue: next } : {}),
    };
  }
}

const patchContentTypes = {
  merge: "application/merge-patch+json",
  json: "application/json-patch+json",
  // JSON is YAML.
  apply: "application/apply-patch+yaml",
} as const;

function selectors(options: { labelSelector?: string; fieldSelector?: string }) {
  return { labelSelector: options.labelSelector, fieldSelector: options.fieldSelector };
}

function withKind<T extends KubeObject>(type: ResourceType<T>, object: T): T {
  if (object.apiVersion && object.kind) return object;
  return { apiVersion: formatApiVersion(type), kind: type.kind, ...object };
}

function describe(
  verb: string,
  type: ResourceType<KubeObject>,
  key: { namespace?: string | undefined; name?: string | undefined },
  subresource?: string,
): string {
  const what = subresource ? `${type.plural}/${subresource}` : type.plural;
  if (key.name) return `${verb} ${what} ${formatKey(key)}`;
  return key.namespace ? `${verb} ${what} in ${key.namespace}` : `${verb} ${what}`;
}

function unreadable(what: string, why: string): KubeError {
  return new KubeError(`${what}: the answer ${why}`, { kind: "unavailable", status: 0 });
}

function parseWatchEvent<T extends KubeObject>(facts: { what: string; write: boolean }, line: string): WatchEvent<T> {
  let event: { type?: string; object?: unknown };
  try {
    event = JSON.parse(line) as typeof event;
  } catch {
    throw unreadable(facts.what, "has an unreadable line");
  }
  switch (event.type) {
    case "ADDED":
    case "MODIFIED":
    case "DELETED":
      return { type: event.type, object: event.object as T };
    case "BOOKMARK":
      return { type: "BOOKMARK", resourceVersion: (event.object as KubeObject).metadata.resourceVersion ?? "" };
    case "ERROR":
      throw errorFromWatchStatus(facts, (event.object ?? {}) as StatusBody);
    default:
      throw unreadable(facts.what, `has an event of unknown type ${event.type}`);
  }
}
