import { expect, test } from "vitest";
import { WriteBehind } from "../../../../src/archive/base/write-behind.ts";
import type { TreeSink } from "../../../../src/ports/tree-files.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A file whose writes end when they are told to. */
class HeldSink implements TreeSink {
  readonly written: number[] = [];
  closed = false;
  readonly #ends: (() => void)[] = [];

  async write(chunk: Uint8Array): Promise<void> {
    await new Promise<void>((resolve) => this.#ends.push(resolve));
    this.written.push(chunk[0] ?? -1);
  }

  async close(): Promise<void> {
    this.closed = true;
  }

  async end(): Promise<void> {
    this.#ends.shift()?.();
    await turn();
  }
}

async function* chunks(count: number, bytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < count; at++) yield new Uint8Array(bytes).fill(at);
}

test("the reader goes on before the bytes are written, which keep their order, and the file is closed after them", async () => {
  const sink = new HeldSink();
  const writes = new WriteBehind();
  await writes.file("/a", sink, chunks(3, 10), 0n);
  expect(sink.written).toEqual([]);
  const finished = writes.finish();
  for (let at = 0; at < 3; at++) {
    expect(sink.closed).toBe(false);
    await turn();
    await sink.end();
  }
  await finished;
  expect(sink).toMatchObject({ written: [0, 1, 2], closed: true });
});

test("the reader waits when too many bytes are under way", async () => {
  const sink = new HeldSink();
  const writes = new WriteBehind();
  let taken = 0;
  async function* counted() {
    for await (const chunk of chunks(6, 2 << 20)) {
      taken += 1;
      yield chunk;
    }
  }
  const file = writes.file("/a", sink, counted(), 0n);
  await turn();
  expect(taken).toBe(3);
  await sink.end();
  expect(taken).toBe(4);
  for (let at = 0; at < 6; at++) await sink.end();
  await file;
  await writes.finish();
  expect(sink.written).toEqual([0, 1, 2, 3, 4, 5]);
});

test("what cannot be written is the failure of the next call, and every file is closed", async () => {
  const writes = new WriteBehind();
  let closed = 0;
  const sink: TreeSink = {
    write: async () => {
      throw new Error("no space left on device");
    },
    close: async () => {
      closed += 1;
    },
  };
  const writing = (async () => {
    await writes.file("/a", sink, chunks(2, 10), 0n);
    await writes.finish();
  })();
  await expect(writing).rejects.toThrow("no space left on device");
  await expect(writes.file("/b", sink, chunks(2, 10), 0n)).rejects.toThrow("no space left on device");
  await writes.settle();
  expect(closed).toBe(2);
});

test("a large file is synced on its way, after what was written before", async () => {
  const events: string[] = [];
  const sink: TreeSink = {
    write: async () => void events.push("write"),
    close: async () => void events.push("close"),
  };
  const writes = new WriteBehind({ sync: async (path) => void events.push(`sync ${path}`) });
  await writes.file("/large", sink, chunks(9, 4 << 20), 0n);
  await writes.file("/small", sink, chunks(1, 10), 0n);
  await writes.finish();
  expect(events.filter((event) => event.startsWith("sync"))).toEqual(["sync /large"]);
  expect(events.indexOf("sync /large")).toBeGreaterThanOrEqual(8);
});
