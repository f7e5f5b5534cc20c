import { createHash } from "node:crypto";
import { constants, deflateRawSync, gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { compressArchive, compressWal } from "../../../src/store/codecs.ts";
import { chooseStrategy } from "../../../src/store/deflate-strategy.ts";

/** Bytes that nobody can foresee, the same in each run. */
function noise(bytes: number): Buffer {
  const blocks = Array.from({ length: Math.ceil(bytes / 32) }, (_, at) => {
    return createHash("sha256").update(`block ${at}`).digest();
  });
  return Buffer.concat(blocks).subarray(0, bytes);
}

const piece = 512 * 1024;
const digits = Buffer.from(noise(piece / 2).toString("hex"));
const rows = Buffer.from(
  Array.from({ length: 20_000 }, (_, at) => `${at},${(at * 7919) % 1000},branch ${at % 17},ok\n`).join(""),
).subarray(0, piece);
const repeated = Buffer.concat(Array.from({ length: 40 }, () => digits.subarray(0, 12_000)));

describe("repetitions", () => {
  test.each([
    ["random digits", digits, constants.Z_RLE],
    ["random bytes", noise(piece), constants.Z_RLE],
    ["rows of a table", rows, constants.Z_DEFAULT_STRATEGY],
    ["zeros", Buffer.alloc(piece), constants.Z_DEFAULT_STRATEGY],
    ["random digits that come again", repeated, constants.Z_DEFAULT_STRATEGY],
    ["one byte", Buffer.from("x"), constants.Z_RLE],
  ])("in %s", async (_name, bytes, strategy) => {
    expect(await chooseStrategy(bytes, 6)).toBe(strategy);
  });
});

describe("gzip of random digits", () => {
  const searched = deflateRawSync(digits, { level: 6 }).length;

  test.each([
    ["a base archive", compressArchive],
    ["a WAL file", compressWal],
  ])("in %s takes less room than a search for repetitions gives, and is the same bytes", async (_name, compress) => {
    const packed: Uint8Array[] = [];
    for await (const chunk of compress(one(digits), "gzip")) packed.push(chunk);
    const bytes = Buffer.concat(packed);
    expect(bytes.length).toBeLessThan(searched);
    expect(gunzipSync(bytes).equals(digits)).toBe(true);
  });
});

async function* one(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
