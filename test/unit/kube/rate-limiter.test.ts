import { expect, it } from "vitest";
import { createRateLimiter } from "../../../src/kube/rate-limiter.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

it("lets a burst through and then the rate, in order", async () => {
  const clock = createFakeClock();
  const limiter = createRateLimiter({ perSecond: 2, burst: 3, clock });
  const times: number[] = [];
  for (let i = 0; i < 7; i++) void limiter.take().then(() => times.push(clock.monotonicMs()));
  await clock.advance(5_000);
  expect(times).toEqual([0, 0, 0, 500, 1000, 1500, 2000]);
});

it("charges without waiting, and tells when nothing is left", async () => {
  const clock = createFakeClock();
  const limiter = createRateLimiter({ perSecond: 1, burst: 2, clock });
  expect(limiter.tryTake()).toBe(true);
  limiter.charge(3);
  expect(limiter.tryTake()).toBe(false);
  await clock.advance(2_900);
  expect(limiter.tryTake()).toBe(false);
  await clock.advance(200);
  expect(limiter.tryTake()).toBe(true);
});
