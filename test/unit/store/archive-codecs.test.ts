import { createHash } from "node:crypto";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { type CompressionName, compressions, hasMagic } from "../../../src/barman/compression.ts";
import { CorruptStreamError, compressArchive, decompress } from "../../../src/store/codecs.ts";

function noise(length: number): Buffer {
  const blocks = Array.from({ length: Math.ceil(length / 32) }, (_, at) =>
    createHash("sha256").update(String(at)).digest(),
  );
  return Buffer.concat(blocks).subarray(0, length);
}

const inputs: Record<string, Buffer> = {
  nothing: Buffer.alloc(0),
  "one byte": Buffer.from("x"),
  "a few bytes": Buffer.from("abcabcabcabcd"),
  "a long row of zeros": Buffer.alloc(700_000),
  "rows of every length": Buffer.concat(Array.from({ length: 600 }, (_, at) => Buffer.alloc(at, at % 256))),
  noise: noise(300_001),
  text: Buffer.from(Array.from({ length: 20_000 }, (_, at) => `row ${at} of ${at % 97};`).join("\n")),
};

async function* pieces(data: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < data.length; at += size) yield data.subarray(at, at + size);
}

async function gather(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const chunk of stream) parts.push(Uint8Array.from(chunk));
  return Buffer.concat(parts);
}

const compress = (data: Buffer, name: CompressionName) =>
  gather(compressArchive(pieces(data, 100_003), name, { parallel: 3 }));

describe.each(Object.keys(compressions) as CompressionName[])("%s", (name) => {
  test.each(Object.keys(inputs))("brings %s back", async (input) => {
    const data = inputs[input] ?? Buffer.alloc(0);
    const packed = await compress(data, name);
    if (input !== "nothing") expect(hasMagic(name, packed)).toBe(true);
    expect((await gather(decompress(pieces(packed, 777), name))).equals(data)).toBe(true);
  });

  test("makes text smaller", async () => {
    const data = inputs["text"] ?? Buffer.alloc(0);
    expect((await compress(data, name)).length).toBeLessThan(data.length / 2);
  });

  test("says of a stream that is cut off or changed that it is damaged", async () => {
    const packed = await compress(inputs["text"] ?? Buffer.alloc(0), name);
    await expect(gather(decompress(pieces(packed.subarray(0, -9), 777), name))).rejects.toThrow(CorruptStreamError);
    const changed = Buffer.from(packed);
    changed[packed.length >> 1] = (changed[packed.length >> 1] ?? 0) ^ 0x55;
    await expect(gather(decompress(pieces(changed, 777), name))).rejects.toThrow(CorruptStreamError);
  });

  test("passes an error of the source on", async () => {
    const broken = (async function* () {
      yield Buffer.from([1]).subarray(1);
      throw new RangeError("the network is gone");
    })();
    await expect(gather(decompress(broken, name))).rejects.toThrow("the network is gone");
  });
});

test("gzip is one member, whatever the pieces", async () => {
  const data = inputs["text"] ?? Buffer.alloc(0);
  const packed = await compress(data, "gzip");
  expect(gunzipSync(packed).equals(data)).toBe(true);
  const size = packed.readUInt32LE(packed.length - 4);
  expect(size).toBe(data.length);
});

test("bzip2 lets other work have its turn while it compresses and decompresses", async () => {
  const content = Buffer.alloc(1_000_000, "some text that repeats itself, as it may. ");
  async function* whole(bytes: Uint8Array) {
    yield bytes;
  }
  const turnsDuring = async (stream: AsyncIterable<Uint8Array>) => {
    let [turns, going] = [0, true];
    const count = () => {
      turns += 1;
      if (going) setImmediate(count);
    };
    setImmediate(count);
    const chunks: Uint8Array[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    going = false;
    return { turns, bytes: Buffer.concat(chunks) };
  };
  const compressed = await turnsDuring(compressArchive(whole(content), "bzip2"));
  expect(compressed.turns).toBeGreaterThanOrEqual(9);
  const back = await turnsDuring(decompress(whole(compressed.bytes), "bzip2"));
  expect(back.turns).toBeGreaterThanOrEqual(9);
  expect(back.bytes.equals(content)).toBe(true);
});
