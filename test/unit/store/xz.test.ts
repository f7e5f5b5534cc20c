import { describe, expect, test } from "vitest";
import { Crc64 } from "../../../src/store/xz/crc64.ts";
import { xzCompress } from "../../../src/store/xz/xz-compress.ts";
import { xzDecompress } from "../../../src/store/xz/xz-decompress.ts";
import { createSeededRandom } from "../../support/seeded-random.ts";

async function* pieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function gather(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const chunk of chunks) all.push(Uint8Array.from(chunk));
  return Buffer.concat(all);
}

const unpack = (bytes: Uint8Array, size = 777) => gather(xzDecompress(pieces(bytes, size)));

const phrase = "the archive holds everything, ";
const long = phrase.repeat(64);

/** Made by xz 5.4 of that text. */
const foreign: readonly [string, string, string][] = [
  [
    "CRC-64",
    long,
    "/Td6WFoAAATm1rRGAgAhARYAAAB0L+Wj4Ad/AC5dADoaCM52N8Hva77bbDNugG+UxKDTQ8LErRxjTpUIX/l2wp34N5++oRNJ10GxPAAAAAC3iKUGROOP+gABSoAPAAAAE10ThLHEZ/sCAAAAAARZWg==",
  ],
  [
    "SHA-256",
    long,
    "/Td6WFoAAArh+wyhAgAhARYAAAB0L+Wj4Ad/AC5dADoaCM52N8Hva77bbDNugG+UxKDTQ8LErRxjTpUIX/l2wp34N5++oRNJ10GxPAAAAACL7GdPxPfjTDK5Sd3HO3YAt0p2feYX2hGnPCkSBXj1BgABYoAPAAAASNrsb7bp3xwCAAAAAApZWg==",
  ],
  [
    "no check",
    long,
    "/Td6WFoAAAD/EtlBAgAhARYAAAB0L+Wj4Ad/AC5dADoaCM52N8Hva77bbDNugG+UxKDTQ8LErRxjTpUIX/l2wp34N5++oRNJ10GxPAAAAAAAAUKADwAAAH7fQGioAAr8AgAAAAAAWVo=",
  ],
  [
    "several blocks",
    long,
    "/Td6WFoAAATm1rRGAgAhARYAAAB0L+Wj4AK7AChdADoaCM52N8Hva77bbDNugG+UxKDTQ8LErRxjTpUIX/l2wp34J7CMIAAA+3E+O81A/jACACEBFgAAAHQv5aPgArsAKF0AMogJBzPyToxF/kRVktmxw86oUZ3lDVEXLSvC5mRCPU+YVBghZc9kAADa9CMsilacCQIAIQEWAAAAdC/lo+ACBwAmXQAynIuS3S7nO1KaST+WYRuPaj5Ijin+Ao0tF8ZYcYS3jYE7hMpAAAAAAGvM1W2DeX5lAANEvAVEvAVCiAQAxygtPBQXOzADAAAAAARZWg==",
  ],
  [
    "other bits for the contexts",
    long,
    "/Td6WFoAAATm1rRGAgAhARYAAAB0L+Wj4Ad/AC8SADoa2dRzflSiTPJ9g0YqxsgS/8q/kThUoJoIhSHcG7YAbXmKmS5N2oHZBNznf/YAAAC3iKUGROOP+gABS4APAAAAto5PT7HEZ/sCAAAAAARZWg==",
  ],
  [
    "two streams with padding between them",
    long.slice(0, 120),
    "/Td6WFoAAATm1rRGAgAhARYAAAB0L+Wj4AA7ACRdADoaCM52N8Hva77bbDNugG+UxKDTQ8LErRxjTpUIX/Z+DFzwAABs2MIa4yjKjAABQDyphpD/H7bzfQEAAAAABFlaAAAAAP03elhaAAAE5ta0RgIAIQEWAAAAdC/lo+AAOwAkXQA6GgjOdjfB72u+22wzboBvlMSg00PCxK0cY06VCF/2fgxc8AAAbNjCGuMoyowAAUA8qYaQ/x+2830BAAAAAARZWg==",
  ],
];

describe("files of the xz tool", () => {
  test.each(foreign)("with %s are read, however they arrive", async (_what, text, base64) => {
    const bytes = Buffer.from(base64, "base64");
    for (const size of [1, 7, 100_000]) expect((await unpack(bytes, size)).toString()).toBe(text);
  });

  test.each(foreign)("with %s are refused once any byte is another one, or missing", async (what, _text, base64) => {
    const bytes = Buffer.from(base64, "base64");
    const second = bytes.indexOf(bytes.subarray(0, 6), 6);
    for (let at = 0; at < bytes.length; at++) {
      const damaged = Buffer.from(bytes);
      damaged[at] = (damaged[at] as number) ^ 0x10;
      // Without a checksum a changed byte may go unnoticed, as it must; a changed text it is not.
      if (what === "no check" && at >= 24 && at < bytes.length - 24) continue;
      await expect(unpack(damaged), `byte ${at}`).rejects.toThrow();
      // Where the first of two streams ends, and behind the padding, a file may end too.
      const endsThere = second > 0 && (at === second - 4 || at === second);
      if (!endsThere) await expect(unpack(bytes.subarray(0, at)), `cut at ${at}`).rejects.toThrow();
    }
  });
});

test("a file that asks for too large a dictionary is refused before memory is taken", async () => {
  const bytes = Buffer.from((foreign[0] as readonly string[])[2] as string, "base64");
  // 4 GiB less one byte, with a header that is sound but for that.
  const header = Buffer.from(bytes.subarray(12, 20));
  header[4] = 40;
  const { crc32 } = await import("node:zlib");
  header.copy(bytes, 12);
  bytes.writeUInt32LE(crc32(header), 20);
  await expect(unpack(bytes)).rejects.toThrow("larger than allowed");
});

test("the checksum is the one that the format means", () => {
  const crc = new Crc64();
  crc.update(Buffer.from("1234"));
  crc.update(Buffer.from("56789"));
  expect(crc.digest().readBigUInt64LE(0)).toBe(0x995d_c9bb_df19_39fan);
});

/** Rows that repeat each other in part, at distances beyond every dictionary of a low level. */
function rows(count: number): Buffer {
  const random = createSeededRandom(11);
  const words = Array.from({ length: 400 }, () => Buffer.from(random.bytes(9)).toString("hex"));
  return Buffer.from(Array.from({ length: count }, (_, at) => `${at},${words[(at * 7919) % 400]},ok\n`).join(""));
}

describe.each([0, 3, 9])("level %i", (level) => {
  test.each([
    ["rows, beyond the dictionary where it is small", rows(level === 0 ? 60_000 : 5_000)],
    ["noise", Buffer.from(createSeededRandom(3).bytes(200_000))],
    [
      "noise between zeros",
      Buffer.concat([Buffer.alloc(90_000), Buffer.from(createSeededRandom(4).bytes(70_001)), Buffer.alloc(90_000)]),
    ],
    ["one byte", Buffer.from("x")],
    ["nothing", Buffer.alloc(0)],
  ])("%s come back", async (_what, bytes) => {
    const packed = await gather(xzCompress(pieces(bytes, 130_000), level));
    expect((await unpack(packed, 50_000)).equals(bytes)).toBe(true);
    expect(packed.length).toBeLessThan(bytes.length + bytes.length / 4096 + 200);
  });
});

test("text that repeats is stored in a small part of its size", async () => {
  const bytes = rows(30_000);
  expect((await gather(xzCompress(pieces(bytes, 1 << 20), 3))).length).toBeLessThan(bytes.length / 20);
});
