import { constants, gunzipSync, zstdDecompressSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { CorruptStreamError, compressWal, decompress } from "../../../src/store/codecs.ts";
import { chooseEffort } from "../../../src/store/effort.ts";
import { gatherParts } from "../../../src/store/parts.ts";
import { createSeededRandom } from "../../support/seeded-random.ts";

const text = Buffer.from("the same words over and over, ".repeat(40_000));
const noise = Buffer.from(createSeededRandom(7).bytes(400_000));

async function* pieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function gather(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return Buffer.concat(all);
}

describe.each([undefined, "gzip", "zstd"] as const)("%s", (compression) => {
  test.each([
    ["text", text],
    ["noise", noise],
    ["nothing", Buffer.alloc(0)],
    ["one byte", Buffer.from("x")],
  ])("%s comes back, whatever the pieces", async (_what, bytes) => {
    for (const size of [100_000, 1 << 20]) {
      const packed = await gather(compressWal(pieces(bytes, size), compression, { parallel: 3, size: bytes.length }));
      expect((await gather(decompress(pieces(packed, 7_000), compression))).equals(bytes)).toBe(true);
      const peer =
        compression === "gzip" ? gunzipSync(packed) : compression === "zstd" ? zstdDecompressSync(packed) : packed;
      expect(peer.equals(bytes)).toBe(true);
    }
  });

  test("a source's failure comes out as it is", async () => {
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield text.subarray(0, 1000);
      throw new Error("the disk is gone");
    }
    await expect(gather(compressWal(failing(), compression))).rejects.toThrow("the disk is gone");
    if (compression === undefined) return;
    const packed = await gather(compressWal(pieces(text, 1 << 20), compression));
    async function* cut(): AsyncGenerator<Uint8Array> {
      yield packed.subarray(0, 100);
      throw new Error("the network is gone");
    }
    await expect(gather(decompress(cut(), compression))).rejects.toThrow("the network is gone");
  });
});

test.each(["gzip", "zstd"] as const)("a %s stream that is cut off or damaged is corrupt", async (compression) => {
  const packed = await gather(compressWal(pieces(noise, 1 << 20), compression));
  for (const end of [0, 3, packed.length >> 1, packed.length - 1]) {
    await expect(gather(decompress(pieces(packed.subarray(0, end), 7_000), compression))).rejects.toThrow(
      CorruptStreamError,
    );
  }
  const damaged = Buffer.from(packed);
  damaged.writeUInt32LE(0xdeadbeef, packed.length >> 1);
  await expect(gather(decompress(pieces(damaged, 7_000), compression))).rejects.toThrow(CorruptStreamError);
});

test("zstd is one frame, as Barman reads no second one", async () => {
  const packed = await gather(compressWal(pieces(text, 100_000), "zstd", { size: text.length }));
  expect(packed.indexOf(Buffer.from([0x28, 0xb5, 0x2f, 0xfd]), 4)).toBe(-1);
});

describe("level", () => {
  const hex = Buffer.from(noise.toString("hex").slice(0, 300_000));

  test("of random values is the lowest, since the higher ones gain nothing", async () => {
    expect(await chooseEffort("gzip", hex)).toEqual({ level: 6, strategy: constants.Z_RLE });
    expect(await chooseEffort("zstd", hex)).toEqual({ level: 1 });
  });

  test("of structured rows is one that stores about as little as the default", async () => {
    const words = Buffer.from(
      Array.from({ length: 9000 }, (_, at) => `${at},${(at * 7919) % 1000},branch ${at % 17},ok\n`).join(""),
    );
    const effort = await chooseEffort("gzip", words);
    const size = async (options: object) => (await gather(compressWal(pieces(words, 1 << 20), "gzip", options))).length;
    expect(effort.strategy).toBeUndefined();
    expect(await size(effort)).toBeLessThanOrEqual((await size({ level: 6 })) * 1.03);
  });

  test("of nothing, and of formats without a choice, is the default", async () => {
    expect(await chooseEffort("gzip", Buffer.alloc(0))).toEqual({ level: 6 });
    expect(await chooseEffort("xz", text)).toEqual({ level: 3 });
    expect(await chooseEffort("snappy", text)).toEqual({ level: undefined });
  });
});

test.each([
  [0, []],
  [1, [1]],
  [10, [10]],
  [11, [10, 1]],
  [20, [10, 10]],
  [35, [10, 10, 10, 5]],
])("a stream of %i bytes is cut into parts of ten", async (size, expected) => {
  for (const chunk of [1, 3, 10, 100]) {
    const parts: number[] = [];
    for await (const part of gatherParts(pieces(Buffer.alloc(size), chunk), 10)) parts.push(part.length);
    expect(parts).toEqual(expected);
  }
});
