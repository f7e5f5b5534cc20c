import { expect, test } from "vitest";
import { readAhead } from "../../../src/archive/read-ahead.ts";

async function gather<T>(source: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const each of source) all.push(each);
  return all;
}

test.each([1, 2, 100])("all chunks come in their order, %i ahead", async (count) => {
  async function* numbers() {
    for (let at = 0; at < 10; at++) yield at;
  }
  expect(await gather(readAhead(numbers(), count))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

test("reads so many ahead of its taker and no more, and lets the source end when no more is wanted", async () => {
  let read = 0;
  let ended = false;
  async function* endless() {
    try {
      for (;;) yield read++;
    } finally {
      ended = true;
    }
  }
  const chunks = readAhead(endless(), 3);
  await chunks.next();
  await new Promise((resolve) => setImmediate(resolve));
  expect(read).toBe(4);
  await chunks.return(undefined);
  expect(ended).toBe(true);
});

test("a failure comes after what was read before it", async () => {
  async function* failing() {
    yield 1;
    yield 2;
    throw new Error("the network is gone");
  }
  const seen: number[] = [];
  const reading = (async () => {
    for await (const each of readAhead(failing(), 5)) seen.push(each);
  })();
  await expect(reading).rejects.toThrow("the network is gone");
  expect(seen).toEqual([1, 2]);
});
