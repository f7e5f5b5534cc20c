import type { Clock, Random } from "../ports/clock.ts";
import {
  isKubeError,
  KubeError,
  type KubeObject,
  type ObjectKey,
  type ResourceType,
  type Store,
  type StoreEvent,
} from "../ports/kube-api.ts";
import type { Logger } from "../ports/logger.ts";
import type { Runnable } from "../runtime/runnable.ts";
import { systemRandom } from "../runtime/system-random.ts";
import type { ListWatch } from "./kube-client.ts";
import { createRateLimiter, type RateLimiter } from "./rate-limiter.ts";
import { planReconnect, type ReconnectState, type StoreOutcome } from "./reconnect-plan.ts";
import { matchesFieldSelector, matchesLabelSelector } from "./selectors.ts";
import { StoreState } from "./store-state.ts";

export interface StoreOptions<T extends KubeObject> {
  logger: Logger;
  clock: Clock;
  /** @default the system's random values */
  random?: Random;
  /** All namespaces when absent. */
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  /** Shrinks each object before it is kept. @default drops managedFields */
  transform?: (object: T) => T;
  /** Objects in one page of a list. @default 500 */
  pageSize?: number;
  /** A watch without any data for this long is given up; servers send a bookmark about each minute. @default 150000 */
  inactivityMs?: number;
  /** The server is asked to end a watch after this to twice this time. @default 300000 */
  watchMs?: number;
}

/** A store and the loop that keeps it current. */
export type RunnableStore<T extends KubeObject> = Store<T> & Runnable;

/** Creates a store; it fills once it is run. */
export function createStore<T extends KubeObject>(
  source: ListWatch,
  type: ResourceType<T>,
  options: StoreOptions<T>,
): RunnableStore<T> {
  return new WatchedStore(source, type, options);
}

/** Drops what only the server needs and what makes up a third of most objects. */
export function dropManagedFields<T extends KubeObject>(object: T): T {
  delete object.metadata.managedFields;
  return object;
}

class WatchedStore<T extends KubeObject> implements RunnableStore<T> {
  readonly name: string;
  readonly type: ResourceType<T>;
  readonly #source: ListWatch;
  readonly #options: StoreOptions<T>;
  readonly #logger: Logger;
  readonly #random: Random;
  readonly #transform: (object: T) => T;
  readonly #state = new StoreState<T>();
  readonly #handlers = new Set<(event: StoreEvent<T>) => void>();
  /** Whatever fails and however, no more than 30 requests leave in any minute: 10 at once and 20 a minute. */
  readonly #pace: RateLimiter;
  #heardAt: number | undefined;
  #synced = false;
  #waiting: (() => void)[] = [];

  constructor(source: ListWatch, type: ResourceType<T>, options: StoreOptions<T>) {
    this.name = `store of ${type.plural}`;
    this.type = type;
    this.#source = source;
    this.#options = options;
    this.#logger = options.logger.child({ logger: "store", resource: type.plural });
    this.#random = options.random ?? systemRandom;
    this.#transform = options.transform ?? dropManagedFields;
    this.#pace = createRateLimiter({ perSecond: 20 / 60, burst: 10, clock: options.clock });
  }

  get(key: ObjectKey): T | undefined {
    return this.#state.get(key);
  }

  list(namespace?: string): readonly T[] {
    return this.#state.list(namespace);
  }

  synced(signal?: AbortSignal): Promise<void> {
    if (this.#synced) return Promise.resolve();
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
      this.#waiting.push(resolve);
    });
  }

  ready(signal: AbortSignal): Promise<void> {
    return this.synced(signal);
  }

  staleForMs(): number {
    return this.#heardAt === undefined ? Number.POSITIVE_INFINITY : this.#options.clock.monotonicMs() - this.#heardAt;
  }

  subscribe(handler: (event: StoreEvent<T>) => void): () => void {
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  observeWrite(object: T): void {
    const { namespace, labelSelector, fieldSelector } = this.#options;
    if (namespace !== undefined && object.metadata.namespace !== namespace) return;
    const matches =
      matchesLabelSelector(labelSelector, object.metadata.labels) && matchesFieldSelector(fieldSelector, object);
    // The writer goes on using its object, so the store keeps a copy of its own.
    this.#publish(this.#state.applyWrite(this.#transform(structuredClone(object)), matches));
  }

  /** Never rejects: this loop is the one thing that must survive every kind of failure. */
  async run(signal: AbortSignal): Promise<void> {
    let state: ReconnectState = { failures: 0, refusals: 0 };
    let relist = true;
    while (!signal.aborted) {
      const outcome = await this.#listAndWatch(relist, signal);
      if (signal.aborted) return;
      const decision = planReconnect(outcome, state, this.#random.float());
      state = decision.state;
      relist = decision.relist || !this.#synced;
      await this.#options.clock.sleep(decision.delayMs, signal).catch(() => undefined);
    }
  }

  async #listAndWatch(relist: boolean, signal: AbortSignal): Promise<StoreOutcome> {
    let watchBegan: number | undefined;
    const livedMs = () => (watchBegan === undefined ? 0 : this.#options.clock.monotonicMs() - watchBegan);
    try {
      if (relist) await this.#list(signal);
      await this.#pace.take(signal);
      watchBegan = this.#options.clock.monotonicMs();
      await this.#watch(signal);
      return { kind: "ended", livedMs: livedMs() };
    } catch (error) {
      if (signal.aborted) return { kind: "ended", livedMs: 0 };
      if (isKubeError(error, "gone")) {
        this.#logger.info("Version to watch from is too old, listing again", { error });
        return { kind: "gone" };
      }
      this.#logger.warning("List or watch failed, trying again", { error });
      const answer = isKubeError(error) ? error : undefined;
      const answered = (answer?.status ?? 0) !== 0;
      return { kind: "failed", livedMs: livedMs(), answered, retryAfterMs: answer?.retryAfterMs };
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    await this.#pace.take(signal);
    let pages = 0;
    try {
      const items: T[] = [];
      let next: string | undefined;
      let version: string;
      do {
        const page = await this.#source.listPage(this.type, {
          ...this.#selection(signal),
          limit: this.#options.pageSize ?? 500,
          ...(next ? { continue: next } : {}),
        });
        this.#heard();
        for (const item of page.items) items.push(this.#transform(item));
        // All pages show the snapshot of the first.
        version = page.resourceVersion;
        next = page.continue;
        pages++;
      } while (next);
      this.#publish(this.#state.applyList(items, version));
      this.#markSynced();
    } catch (error) {
      // Pages of a list that failed count against the pace like requests of their own.
      if (pages > 0) this.#pace.charge(pages);
      throw error;
    }
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { watchMs = 300_000, inactivityMs = 150_000 } = this.#options;
    const silent = new AbortController();
    const over = new AbortController();
    const watchdog = this.#giveUpWhenSilent(inactivityMs, silent, over.signal);
    try {
      const events = this.#source.watch(this.type, {
        ...this.#selection(AbortSignal.any([signal, silent.signal])),
        resourceVersion: this.#state.seenVersion,
        timeoutSeconds: Math.round((watchMs * (1 + this.#random.float())) / 1000),
        onData: () => this.#heard(),
      });
      for await (const event of events) {
        if (event.type === "BOOKMARK") this.#state.applyBookmark(event.resourceVersion);
        else this.#publish(this.#state.applyWatch(event.type, this.#transform(event.object)));
      }
    } catch (error) {
      throw silent.signal.aborted ? silent.signal.reason : error;
    } finally {
      over.abort();
      await watchdog;
    }
    // A source that ends quietly on abort must not pass for a server that ended the watch.
    if (silent.signal.aborted) throw silent.signal.reason;
  }

  async #giveUpWhenSilent(inactivityMs: number, silent: AbortController, over: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const began = clock.monotonicMs();
    // Before its first sign of life a new watch has its own start to count from, but the store grows no younger by it.
    const silentMs = () => Math.min(this.staleForMs(), clock.monotonicMs() - began);
    try {
      for (let rest = inactivityMs; rest > 0; rest = inactivityMs - silentMs()) await clock.sleep(rest, over);
    } catch {
      return;
    }
    const message = `watch ${this.type.plural}: nothing was heard for ${inactivityMs} ms`;
    silent.abort(new KubeError(message, { kind: "unavailable", status: 0 }));
  }

  #selection(signal: AbortSignal) {
    const { namespace, labelSelector, fieldSelector } = this.#options;
    return {
      signal,
      ...(namespace === undefined ? {} : { namespace }),
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
    };
  }

  #heard(): void {
    this.#heardAt = this.#options.clock.monotonicMs();
  }

  #markSynced(): void {
    this.#synced = true;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  #publish(events: StoreEvent<T>[]): void {
    for (const event of events) {
      for (const handler of this.#handlers) {
        try {
          handler(event);
        } catch (error) {
          // One subscriber's mistake must not cost the others their events.
          this.#logger.error("Subscriber failed", { error });
        }
      }
    }
  }
}
