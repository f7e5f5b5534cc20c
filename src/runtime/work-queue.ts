import type { Clock } from "../ports/clock.ts";
import { type BackoffOptions, backoffDelayMs } from "./backoff.ts";
import { Heap } from "./heap.ts";

/** Delays after errors: 5 ms, doubling to 1000 s. */
export const defaultQueueBackoff: BackoffOptions = { baseMs: 5, maxMs: 1_000_000 };

/** Where a queue reports what it does. */
export interface WorkQueueMetrics {
  /** Keys that could be handed out now. */
  depth(count: number): void;
  added(): void;
  retried(): void;
  /** Time between being due and being handed out. */
  waited(ms: number): void;
  worked(ms: number): void;
  /** Called once with the way to ask how long each key has been worked on by now, in milliseconds. */
  working(ages: () => readonly number[]): void;
}

export interface AddOptions {
  /** Not to be handed out earlier than this from now. @default 0 */
  delayMs?: number;
  /** Higher goes first among the keys that are due. @default 0 */
  priority?: number;
}

/**
 * Holds keys of work to do, never the events that caused it. A key is queued once: of several adds the smallest delay and the
 * highest priority count. A key that is being worked on is not handed out again until `done`.
 */
export interface WorkQueue {
  readonly name: string;
  /** Keys waiting, due or delayed; those being worked on are not counted. */
  readonly size: number;
  add(key: string, options?: AddOptions): void;
  /** Adds with a delay that grows with each call until `forget`; returns the delay. */
  addRateLimited(key: string, options?: { priority?: number }): number;
  /** Starts the delays of the key anew. */
  forget(key: string): void;
  failures(key: string): number;
  /** The next due key, locked until `done`; `undefined` once the queue is closed or the signal is aborted. */
  take(signal?: AbortSignal): Promise<string | undefined>;
  done(key: string): void;
  /** No key is handed out any more; those waiting are dropped. */
  close(): void;
}

export interface WorkQueueOptions {
  name: string;
  clock: Clock;
  /** @default 5 ms doubling to 1000 s */
  backoff?: BackoffOptions;
  metrics?: WorkQueueMetrics;
}

interface Item {
  key: string;
  readyAt: number;
  priority: number;
  order: number;
}

/** Creates an empty queue. */
export function createWorkQueue(options: WorkQueueOptions): WorkQueue {
  return new KeyQueue(options);
}

class KeyQueue implements WorkQueue {
  readonly name: string;
  readonly #clock: Clock;
  readonly #backoff: BackoffOptions;
  readonly #metrics: WorkQueueMetrics | undefined;
  readonly #items = new Map<string, Item>();
  readonly #working = new Map<string, number>();
  readonly #failures = new Map<string, number>();
  // Heaps may hold outdated entries (the key was re-added or taken); an entry counts only if it is the one in #items.
  readonly #delayed = new Heap<Item>((a, b) => a.readyAt < b.readyAt || (a.readyAt === b.readyAt && a.order < b.order));
  readonly #due = new Heap<Item>((a, b) => a.priority > b.priority || (a.priority === b.priority && a.order < b.order));
  readonly #waiters = new Set<() => void>();
  #order = 0;
  #closed = false;
  #alarm: { at: number; cancel: AbortController } | undefined;

  constructor(options: WorkQueueOptions) {
    this.name = options.name;
    this.#clock = options.clock;
    this.#backoff = options.backoff ?? defaultQueueBackoff;
    this.#metrics = options.metrics;
    this.#metrics?.working(() => {
      const now = this.#clock.monotonicMs();
      return [...this.#working.values()].map((started) => now - started);
    });
  }

  get size(): number {
    return this.#items.size;
  }

  add(key: string, options: AddOptions = {}): void {
    if (this.#closed) return;
    const readyAt = this.#clock.monotonicMs() + Math.max(0, options.delayMs ?? 0);
    const priority = options.priority ?? 0;
    const known = this.#items.get(key);
    if (known && known.readyAt <= readyAt && known.priority >= priority) return;
    const item: Item = {
      key,
      readyAt: Math.min(readyAt, known?.readyAt ?? readyAt),
      priority: Math.max(priority, known?.priority ?? priority),
      order: known?.order ?? this.#order++,
    };
    if (!known) this.#metrics?.added();
    this.#items.set(key, item);
    // A locked key gets its heap entry when its worker is done.
    if (!this.#working.has(key)) this.#schedule(item);
  }

  addRateLimited(key: string, options: { priority?: number } = {}): number {
    const failures = this.failures(key) + 1;
    this.#failures.set(key, failures);
    const delayMs = backoffDelayMs(failures, this.#backoff);
    this.#metrics?.retried();
    this.add(key, { ...options, delayMs });
    return delayMs;
  }

  forget(key: string): void {
    this.#failures.delete(key);
  }

  failures(key: string): number {
    return this.#failures.get(key) ?? 0;
  }

  async take(signal?: AbortSignal): Promise<string | undefined> {
    while (!this.#closed && !signal?.aborted) {
      const item = this.#next();
      if (item) return item.key;
      await this.#wait(signal);
    }
    return undefined;
  }

  done(key: string): void {
    const started = this.#working.get(key);
    if (started === undefined) return;
    this.#working.delete(key);
    this.#metrics?.worked(this.#clock.monotonicMs() - started);
    const item = this.#items.get(key);
    if (item) this.#schedule(item);
  }

  close(): void {
    this.#closed = true;
    this.#items.clear();
    this.#alarm?.cancel.abort();
    this.#wakeAll();
  }

  #schedule(item: Item): void {
    this.#delayed.push(item);
    this.#promote();
    this.#wakeAll();
  }

  #next(): Item | undefined {
    this.#promote();
    for (let item = this.#due.pop(); item; item = this.#due.pop()) {
      if (this.#items.get(item.key) !== item || this.#working.has(item.key)) continue;
      this.#items.delete(item.key);
      const now = this.#clock.monotonicMs();
      this.#working.set(item.key, now);
      this.#metrics?.waited(now - item.readyAt);
      this.#reportDepth();
      return item;
    }
    return undefined;
  }

  /** Moves what has become due and sets the alarm for what comes next. */
  #promote(): void {
    const now = this.#clock.monotonicMs();
    for (let item = this.#delayed.peek(); item; item = this.#delayed.peek()) {
      const current = this.#items.get(item.key) === item;
      if (current && item.readyAt > now) break;
      this.#delayed.pop();
      if (current) this.#due.push(item);
    }
    this.#reportDepth();
    const next = this.#delayed.peek();
    if (next) this.#setAlarm(next.readyAt);
  }

  #reportDepth(): void {
    // The heap may hold outdated entries, so this is an upper bound that is exact when nothing was re-added.
    this.#metrics?.depth(Math.min(this.#due.size, this.#items.size));
  }

  #setAlarm(at: number): void {
    if (this.#closed || (this.#alarm && this.#alarm.at <= at)) return;
    this.#alarm?.cancel.abort();
    const alarm = { at, cancel: new AbortController() };
    this.#alarm = alarm;
    const ring = () => {
      if (this.#alarm !== alarm) return;
      this.#alarm = undefined;
      this.#promote();
      this.#wakeAll();
    };
    this.#clock.sleep(at - this.#clock.monotonicMs(), alarm.cancel.signal).then(ring, () => undefined);
  }

  #wait(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#waiters.delete(wake);
        signal?.removeEventListener("abort", wake);
        resolve();
      };
      this.#waiters.add(wake);
      signal?.addEventListener("abort", wake, { once: true });
    });
  }

  #wakeAll(): void {
    for (const wake of [...this.#waiters]) wake();
  }
}
