import type { Clock } from "../ports/clock.ts";
import type { EventTarget } from "../ports/event-sink.ts";
import { createRateLimiter, type RateLimiter } from "./rate-limiter.ts";

/** One event object and what has to be written of it. Its count goes up while it waits to be sent. */
export interface EventWrite {
  target: EventTarget;
  namespace: string;
  name: string;
  type: "Normal" | "Warning";
  reason: string;
  message: string;
  count: number;
  firstMs: number;
  lastMs: number;
  /** Whether the object exists on the server. */
  written: boolean;
}

/** Repeats count as one event for this long. */
const memoryMs = 10 * 60_000;
const maxRemembered = 4_096;
/** New events about one object: so many at once, then one in this time. */
const burstPerObject = 25;
const onePerSeconds = 300;
/** Longest message that the server takes. */
const maxMessageLength = 1024;

/** Turns records into writes: equal ones into one write with a count, floods into nothing. */
export class EventAggregator {
  readonly #clock: Clock;
  readonly #known = new Map<string, EventWrite>();
  readonly #queued = new Set<EventWrite>();
  readonly #limits = new Map<string, RateLimiter>();
  #sequence = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The write to queue; `undefined` when one that waits already covers it or the object is flooded. */
  record(
    target: EventTarget,
    event: { type: "Normal" | "Warning"; reason: string; message: string },
  ): EventWrite | undefined {
    const now = this.#clock.now();
    const key = JSON.stringify([
      target.kind,
      target.namespace,
      target.name,
      target.uid,
      event.type,
      event.reason,
      event.message,
    ]);
    const known = this.#known.get(key);
    if (known && now - known.lastMs <= memoryMs) {
      known.count++;
      known.lastMs = now;
      if (this.#queued.has(known)) return undefined;
    }
    if (!this.#limit(target).tryTake()) return undefined;
    const write = known && now - known.lastMs <= memoryMs ? known : this.#create(key, target, event, now);
    this.#queued.add(write);
    return write;
  }

  /** The write leaves the queue; later repeats are a write of their own. */
  sending(write: EventWrite): void {
    this.#queued.delete(write);
  }

  /** The server no longer has the event: it is counted anew under another name. */
  forget(write: EventWrite): void {
    write.name = this.#name(write.target);
    write.firstMs = write.lastMs;
    write.count = 1;
  }

  #create(
    key: string,
    target: EventTarget,
    event: { type: "Normal" | "Warning"; reason: string; message: string },
    now: number,
  ): EventWrite {
    const write: EventWrite = {
      target,
      // Events about cluster-scoped objects live in the default namespace.
      namespace: target.namespace || "default",
      name: this.#name(target),
      type: event.type,
      reason: event.reason,
      message: event.message.slice(0, maxMessageLength),
      count: 1,
      firstMs: now,
      lastMs: now,
      written: false,
    };
    trim(this.#known, maxRemembered);
    this.#known.set(key, write);
    return write;
  }

  #limit(target: EventTarget): RateLimiter {
    const key = target.uid || `${target.kind}/${target.namespace}/${target.name}`;
    let limit = this.#limits.get(key);
    if (!limit) {
      limit = createRateLimiter({ perSecond: 1 / onePerSeconds, burst: burstPerObject, clock: this.#clock });
      trim(this.#limits, maxRemembered);
      this.#limits.set(key, limit);
    }
    return limit;
  }

  /** Object name, then time and a number, in hex: unique for each event of this process. */
  #name(target: EventTarget): string {
    const suffix = `${this.#clock.now().toString(16)}${(this.#sequence++ & 0xffff).toString(16).padStart(4, "0")}`;
    return `${target.name.slice(0, 200)}.${suffix}`;
  }
}

/** Forgets the oldest half, so that a program that runs for months stays small. */
function trim(map: Map<string, unknown>, most: number): void {
  if (map.size < most) return;
  let surplus = most / 2;
  for (const key of map.keys()) {
    if (surplus-- <= 0) return;
    map.delete(key);
  }
}
