import { createSeededRandom } from "../support/seeded-random.ts";
import type { FaultClass } from "./fault-classes.ts";

interface Event {
  at: number;
  order: number;
  run: () => void;
}

/** True time, the events to come, the network and one source of chance: the same seed gives the same run. */
export class World {
  /** True time in milliseconds; the nodes see it through their own clocks. */
  now = 0;
  /** Share of messages that get lost, and of those that take long. */
  loss = 0;
  slow = 0;
  readonly trace: string[] = [];
  /** What went wrong so far, and how often. */
  readonly faults = new Map<FaultClass, number>();
  readonly #tracing: boolean;
  readonly #heap: Event[] = [];
  readonly #cuts = new Map<string, number>();
  readonly #float: () => number;
  #order = 0;

  constructor(seed: number, tracing: boolean) {
    this.#float = createSeededRandom(seed).float;
    this.#tracing = tracing;
  }

  /** A note for whoever replays a failing seed; the text is only made then. */
  note(text: () => string): void {
    if (this.#tracing) this.trace.push(`${(this.now / 1000).toFixed(3).padStart(8)}  ${text()}`);
  }

  /** Notes that something of this class goes wrong. */
  count(fault: FaultClass): void {
    this.faults.set(fault, (this.faults.get(fault) ?? 0) + 1);
  }

  chance(share: number): boolean {
    return this.#float() < share;
  }

  between(low: number, high: number): number {
    return low + this.#float() * (high - low);
  }

  pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.#float() * from.length)] as T;
  }

  at(time: number, run: () => void): void {
    const heap = this.#heap;
    const event = { at: Math.max(time, this.now), order: this.#order++, run };
    let index = heap.push(event) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!before(event, heap[parent] as Event)) break;
      heap[index] = heap[parent] as Event;
      index = parent;
    }
    heap[index] = event;
  }

  after(ms: number, run: () => void): void {
    this.at(this.now + ms, run);
  }

  /** Runs the next event; false when there is none before the time. */
  step(until: number): boolean {
    const heap = this.#heap;
    const first = heap[0];
    if (!first || first.at > until) return false;
    const last = heap.pop() as Event;
    if (heap.length > 0) sink(heap, last);
    this.now = first.at;
    first.run();
    return true;
  }

  /** Cuts the line between two places; several cuts of one line add up. */
  cut(a: string, b: string): void {
    const key = lineOf(a, b);
    this.#cuts.set(key, (this.#cuts.get(key) ?? 0) + 1);
  }

  mend(a: string, b: string): void {
    const key = lineOf(a, b);
    this.#cuts.set(key, (this.#cuts.get(key) ?? 1) - 1);
  }

  isUp(a: string, b: string): boolean {
    return (this.#cuts.get(lineOf(a, b)) ?? 0) === 0;
  }

  /** Carries something from one place to another: late, or never. */
  send(from: string, to: string, deliver: () => void): void {
    if (!this.isUp(from, to) || this.chance(this.loss)) return;
    const ms = this.chance(this.slow) ? this.between(300, 6_000) : this.between(1, 30);
    this.after(ms, () => {
      if (this.isUp(from, to)) deliver();
    });
  }
}

function lineOf(a: string, b: string): string {
  return a < b ? `${a}|${b}` : `${b}|${a}`;
}

function before(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

function sink(heap: Event[], event: Event): void {
  let index = 0;
  for (;;) {
    let child = 2 * index + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && before(heap[child + 1] as Event, heap[child] as Event)) child += 1;
    if (!before(heap[child] as Event, event)) break;
    heap[index] = heap[child] as Event;
    index = child;
  }
  heap[index] = event;
}
