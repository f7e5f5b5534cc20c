import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createWorkQueue, type WorkQueueMetrics } from "../../../src/runtime/work-queue.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

function aQueue(metrics?: WorkQueueMetrics) {
  const clock = createFakeClock();
  return { clock, queue: createWorkQueue({ name: "test", clock, ...(metrics ? { metrics } : {}) }) };
}

describe("work queue", () => {
  it("tells how long its keys have been worked on", async () => {
    let ages: () => readonly number[] = () => [];
    const nothing = () => undefined;
    const { queue, clock } = aQueue({
      depth: nothing,
      added: nothing,
      retried: nothing,
      waited: nothing,
      worked: nothing,
      working: (ask) => {
        ages = ask;
      },
    });
    expect(ages()).toEqual([]);
    queue.add("a");
    queue.add("b");
    await queue.take();
    await clock.advance(1_500);
    await queue.take();
    await clock.advance(500);
    expect(ages()).toEqual([2_000, 500]);
    queue.done("a");
    expect(ages()).toEqual([500]);
  });

  it("holds a key once", async () => {
    const { queue } = aQueue();
    for (const key of ["a", "b", "a", "a"]) queue.add(key);
    expect(queue.size).toBe(2);
    expect(await queue.take()).toBe("a");
    expect(await queue.take()).toBe("b");
    expect(queue.size).toBe(0);
  });

  it("does not hand out a key that is worked on, and hands it out again afterwards when it was added meanwhile", async () => {
    const { queue, clock } = aQueue();
    queue.add("a");
    expect(await queue.take()).toBe("a");
    queue.add("a");
    let second: string | undefined;
    const taking = queue.take().then((key) => {
      second = key;
    });
    await clock.advance(1000);
    expect(second).toBeUndefined();
    queue.done("a");
    await taking;
    expect(second).toBe("a");
  });

  it("lets the smallest delay win, in either order", async () => {
    for (const delays of [
      [500, 100],
      [100, 500],
    ]) {
      const { queue, clock } = aQueue();
      for (const delayMs of delays) queue.add("a", { delayMs });
      let at: number | undefined;
      const taking = queue.take().then(() => {
        at = clock.monotonicMs();
      });
      await clock.advance(1000);
      await taking;
      expect(at).toBe(100);
      expect(queue.size).toBe(0);
    }
  });

  it("hands out higher priorities first, equal ones in the order of arrival", async () => {
    const { queue } = aQueue();
    queue.add("low", { priority: -1 });
    queue.add("first");
    queue.add("second");
    queue.add("high", { priority: 10 });
    queue.add("low", { priority: 20 });
    const order = [];
    for (let i = 0; i < 4; i++) order.push(await queue.take());
    expect(order).toEqual(["low", "high", "first", "second"]);
  });

  it("does not let a later add with a higher priority put a key off", async () => {
    const { queue, clock } = aQueue();
    queue.add("a", { delayMs: 100 });
    queue.add("a", { delayMs: 5000, priority: 5 });
    queue.add("b", { delayMs: 100, priority: 1 });
    await clock.advance(100);
    expect(await queue.take()).toBe("a");
    expect(await queue.take()).toBe("b");
  });

  it("delays errors by 5 ms, doubling to 1000 s, and starts anew after success", () => {
    const { queue } = aQueue();
    const delays = Array.from({ length: 20 }, () => queue.addRateLimited("a"));
    expect(delays.slice(0, 4)).toEqual([5, 10, 20, 40]);
    expect(delays.at(-1)).toBe(1_000_000);
    queue.forget("a");
    expect(queue.addRateLimited("a")).toBe(5);
  });

  it("wakes an idle worker, and ends all of them when closed or aborted", async () => {
    const { queue, clock } = aQueue();
    const stop = new AbortController();
    const first = queue.take();
    const second = queue.take(stop.signal);
    const third = queue.take();
    queue.add("a");
    expect(await first).toBe("a");
    stop.abort();
    expect(await second).toBeUndefined();
    queue.close();
    expect(await third).toBeUndefined();
    queue.add("b");
    expect(await queue.take()).toBeUndefined();
    expect(clock.sleeping).toBe(0);
  });

  it("reports waiting and working times", async () => {
    const seen: [string, number?][] = [];
    const { queue, clock } = aQueue({
      depth: () => undefined,
      added: () => seen.push(["added"]),
      retried: () => seen.push(["retried"]),
      waited: (ms) => seen.push(["waited", ms]),
      worked: (ms) => seen.push(["worked", ms]),
      working: () => undefined,
    });
    queue.add("a", { delayMs: 10 });
    await clock.advance(50);
    await queue.take();
    await clock.advance(7);
    queue.done("a");
    queue.addRateLimited("a");
    expect(seen).toEqual([["added"], ["waited", 40], ["worked", 7], ["retried"], ["added"]]);
  });

  it("loses no key, never runs one twice at a time, and never hands one out before its time", async () => {
    const command = fc.oneof(
      fc.record({
        kind: fc.constant("add" as const),
        key: fc.constantFrom("a", "b", "c", "d"),
        delayMs: fc.nat(50),
        priority: fc.nat(2),
      }),
      fc.record({ kind: fc.constant("advance" as const), ms: fc.nat(40) }),
      fc.record({ kind: fc.constant("done" as const), index: fc.nat(3) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(command, { maxLength: 40 }), async (commands) => {
        const { queue, clock } = aQueue();
        const due = new Map<string, number>();
        const working: string[] = [];
        const take = async () => {
          for (;;) {
            const key = await queue.take();
            if (key === undefined) return;
            expect(working).not.toContain(key);
            expect(clock.monotonicMs()).toBeGreaterThanOrEqual(due.get(key) ?? Number.POSITIVE_INFINITY);
            due.delete(key);
            working.push(key);
          }
        };
        const taking = take();
        for (const step of commands) {
          if (step.kind === "add") {
            due.set(
              step.key,
              Math.min(due.get(step.key) ?? Number.POSITIVE_INFINITY, clock.monotonicMs() + step.delayMs),
            );
            queue.add(step.key, step);
          } else if (step.kind === "advance") await clock.advance(step.ms);
          else for (const key of working.splice(step.index, 1)) queue.done(key);
        }
        while (working.length > 0 || due.size > 0) {
          for (const key of working.splice(0)) queue.done(key);
          await clock.advance(60);
        }
        expect(queue.size).toBe(0);
        queue.close();
        await taking;
      }),
      { numRuns: 60 },
    );
  });

  it("handles ten thousand keys quickly", async () => {
    const { queue } = aQueue();
    const started = performance.now();
    for (let i = 0; i < 10_000; i++) queue.add(`key-${i}`, { priority: i % 3 });
    for (let i = 0; i < 10_000; i++) queue.done((await queue.take()) ?? "");
    expect(queue.size).toBe(0);
    expect(performance.now() - started).toBeLessThan(2000);
  });
});
