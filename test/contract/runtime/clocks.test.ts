import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { bootClock, systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";

describe.each([
  ["system clock", systemClock],
  ["boot clock", bootClock],
])("%s", (_name, clock) => {
  it("sleeps as long as asked and tells the time", async () => {
    const began = clock.monotonicMs();
    await clock.sleep(120);
    const slept = clock.monotonicMs() - began;
    expect(slept).toBeGreaterThanOrEqual(100);
    expect(slept).toBeLessThan(1_000);
    expect(Math.abs(clock.now() - Date.now())).toBeLessThan(100);
  });

  it("rejects with the signal's own reason, before or while sleeping", async () => {
    const reason = new Error("stopping");
    const stop = new AbortController();
    const sleeping = clock.sleep(60_000, stop.signal);
    stop.abort(reason);
    await expect(sleeping).rejects.toBe(reason);
    await expect(clock.sleep(0, stop.signal)).rejects.toBe(reason);
  });

  it("does not wake early from a sleep longer than a timer can be", async () => {
    const stop = new AbortController();
    let woken = false;
    const sleeping = clock.sleep(5_000_000_000, stop.signal).then(
      () => {
        woken = true;
      },
      () => undefined,
    );
    await clock.sleep(50);
    expect(woken).toBe(false);
    stop.abort();
    await sleeping;
  });
});

it("counts from boot", () => {
  const uptimeMs = Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]) * 1000;
  expect(Math.abs(bootClock.monotonicMs() - uptimeMs)).toBeLessThan(100);
});

it("gives random bytes and floats", () => {
  expect(systemRandom.bytes(16)).toHaveLength(16);
  expect(systemRandom.bytes(16)).not.toEqual(systemRandom.bytes(16));
  for (let i = 0; i < 100; i++) {
    const value = systemRandom.float();
    expect(value).toBeGreaterThanOrEqual(0);
    expect(value).toBeLessThan(1);
  }
});
