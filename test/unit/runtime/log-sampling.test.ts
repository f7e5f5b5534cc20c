import { expect, test } from "vitest";
import { LogSampler } from "../../../src/runtime/log-sampling.ts";

function written(sampler: LogSampler, count: number, now: number, message = "x"): number[] {
  return Array.from({ length: count }, (_, index) => index + 1).filter(() => sampler.admits("info", message, now));
}

test("of equal records in one second the first hundred are written, and each hundredth after them", () => {
  const admitted = written(new LogSampler(), 350, 0);
  expect(admitted.slice(0, 100)).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
  expect(admitted.slice(100)).toEqual([200, 300]);
});

test("a second begins with the first record, and the next one starts over", () => {
  const sampler = new LogSampler();
  expect(written(sampler, 150, 700)).toHaveLength(100);
  expect(written(sampler, 10, 1_699)).toHaveLength(0);
  expect(written(sampler, 10, 1_700)).toHaveLength(10);
});

test("texts without end take no memory without end, and none of them is lost", () => {
  const sampler = new LogSampler();
  const texts = Array.from({ length: 5_000 }, (_, index) => `text ${index}`);
  expect(texts.filter((text) => sampler.admits("info", text, 0))).toHaveLength(5_000);
  expect(written(sampler, 150, 0)).toHaveLength(100);
});
