import { describe, expect, it } from "vitest";
import { type Runnable, StopReason } from "../../../src/runtime/runnable.ts";
import { createRunnableGroups, groupNames } from "../../../src/runtime/runnable-groups.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { captureLogs } from "../../support/log-capture.ts";

function aProgram(options: { stopTimeoutMs?: number; startTimeoutMs?: number } = {}) {
  const clock = createFakeClock();
  const logs = captureLogs();
  const groups = createRunnableGroups({ logger: logs.logger, clock, ...options });
  const story: string[] = [];
  const part = (name: string, extra: Partial<Runnable> & { stopMs?: number } = {}): Runnable => ({
    name,
    async run(signal) {
      story.push(`start ${name}`);
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      if (extra.stopMs) await clock.sleep(extra.stopMs);
      story.push(`stop ${name}`);
    },
    ...extra,
  });
  return { clock, logs, groups, story, part };
}

describe("runnable groups", () => {
  it("starts in order, leader work only when told, and stops in reverse", async () => {
    const { clock, groups, story, part } = aProgram();
    for (const name of [...groupNames].reverse()) groups.add(name, part(name));
    const stop = new AbortController();
    const running = groups.run(stop.signal);
    await clock.settle();
    expect(story).toEqual(["start servers", "start caches", "start others"]);
    groups.startLeaderWork();
    await clock.settle();
    stop.abort();
    await running;
    expect(story.slice(3)).toEqual(["start leader", "stop leader", "stop others", "stop caches", "stop servers"]);
  });

  it("waits for caches to be ready before it starts the rest, and keeps an early wish for leader work", async () => {
    const { clock, groups, story, part } = aProgram();
    let ready: () => void = () => undefined;
    groups.add("caches", part("cache", { ready: () => new Promise((resolve) => (ready = resolve)) }));
    groups.add("others", part("other"));
    groups.add("leader", part("leader"));
    groups.startLeaderWork();
    const stop = new AbortController();
    const running = groups.run(stop.signal);
    await clock.settle();
    expect(story).toEqual(["start cache"]);
    ready();
    await clock.settle();
    expect(story).toEqual(["start cache", "start other", "start leader"]);
    stop.abort();
    await running;
  });

  it("stops everything and rejects when a part fails", async () => {
    const { clock, groups, story, part } = aProgram();
    groups.add("servers", part("server"));
    const failure = new Error("listener closed");
    groups.add("others", {
      name: "bad",
      async run() {
        await clock.sleep(100);
        throw failure;
      },
    });
    const running = groups.run(new AbortController().signal);
    const expectation = expect(running).rejects.toBe(failure);
    await clock.advance(100);
    await expectation;
    expect(story).toEqual(["start server", "stop server"]);
  });

  it("gives up on a group that is not ready in time", async () => {
    const { clock, groups, part } = aProgram({ startTimeoutMs: 1000 });
    groups.add("caches", part("cache", { ready: () => new Promise(() => undefined) }));
    const expectation = expect(groups.run(new AbortController().signal)).rejects.toThrow(
      "caches were not ready within 1000 ms",
    );
    await clock.advance(1000);
    await expectation;
  });

  it("ends within its bound although a part never ends, and tells the others what is left", async () => {
    const { clock, groups, logs, part } = aProgram({ stopTimeoutMs: 5000 });
    let reason: unknown;
    groups.add("leader", { name: "stuck", run: () => new Promise(() => undefined) });
    groups.add("others", {
      name: "election",
      async run(signal) {
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        reason = signal.reason;
      },
    });
    groups.add("servers", part("server", { stopMs: 500 }));
    groups.startLeaderWork();
    const stop = new AbortController();
    const running = groups.run(stop.signal);
    await clock.settle();
    stop.abort();
    await clock.advance(8000);
    await running;
    expect(reason).toBeInstanceOf(StopReason);
    expect((reason as StopReason).unfinished).toEqual(["stuck"]);
    expect(
      logs.records.filter((record) => record.level === "error").map((record) => record.fields["unfinished"]),
    ).toEqual([["stuck"]]);
  });

  it("stops cleanly while it is still starting, and refuses additions afterwards", async () => {
    const { clock, groups, story, part } = aProgram();
    groups.add("caches", part("cache", { ready: () => new Promise(() => undefined) }));
    groups.add("others", part("other"));
    const stop = new AbortController();
    const running = groups.run(stop.signal);
    await clock.settle();
    stop.abort();
    await running;
    expect(story).toEqual(["start cache", "stop cache"]);
    expect(() => groups.add("others", part("late"))).toThrow("the program is stopping");
  });

  it("starts a part that is added while it runs", async () => {
    const { clock, groups, story, part } = aProgram();
    const stop = new AbortController();
    const running = groups.run(stop.signal);
    await clock.settle();
    groups.add("others", part("late"));
    await clock.settle();
    stop.abort();
    await running;
    expect(story).toEqual(["start late", "stop late"]);
  });
});
