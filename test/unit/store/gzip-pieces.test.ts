import { createHash } from "node:crypto";
import { gunzipSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { gunzipPieces } from "../../../src/store/gzip-pieces.ts";
import { gzipPieceBytes, gzipStream } from "../../../src/store/gzip-stream.ts";

async function* pieces(data: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < data.length; at += size) yield data.subarray(at, at + size);
}

async function gather(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const chunk of stream) parts.push(Uint8Array.from(chunk));
  return Buffer.concat(parts);
}

function noise(length: number): Buffer {
  const blocks = Array.from({ length: Math.ceil(length / 32) }, (_, at) =>
    createHash("sha256").update(String(at)).digest(),
  );
  return Buffer.concat(blocks).subarray(0, length);
}

/** Noise is stored as it is, so that its marks stand in the compressed bytes too. */
function noiseWithMarks(length: number, every: number): Buffer {
  const data = Buffer.from(noise(length));
  for (let at = every; at + 4 < length; at += every) data.set([0, 0, 0xff, 0xff], at);
  return data;
}

const compress = (data: Uint8Array) => gather(gzipStream(pieces(data, 300_007), { level: 6, parallel: 3 }));
const refuse = () => {
  throw new Error("not taken for pieces");
};
const expand = (packed: Uint8Array, size = 10_007, parallel = 3) =>
  gather(gunzipPieces(pieces(packed, size), parallel, refuse));

const inputs: Record<string, Buffer> = {
  nothing: Buffer.alloc(0),
  "one byte": Buffer.from("x"),
  "one piece": noise(gzipPieceBytes),
  "a byte more than a piece": noise(gzipPieceBytes + 1),
  "a byte less than two": noise(2 * gzipPieceBytes - 1),
  "rows of zeros": Buffer.alloc(3 * gzipPieceBytes + 17),
  "noise with a mark in each piece": noiseWithMarks(4 * gzipPieceBytes + 5, 400_000),
  "noise with many marks": noiseWithMarks(2 * gzipPieceBytes + 5, 9_973),
  "noise that begins and ends with marks": Buffer.concat([
    Uint8Array.of(0, 0, 0xff, 0xff),
    noise(gzipPieceBytes - 8),
    Uint8Array.of(0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff),
    noise(100_000),
    Uint8Array.of(0, 0, 0xff, 0xff),
  ]),
};

describe.each(Object.keys(inputs))("%s", (name) => {
  const data = inputs[name] ?? Buffer.alloc(0);

  test("is one member to any reader, and comes back from its pieces", async () => {
    const packed = await compress(data);
    expect(gunzipSync(packed).equals(data)).toBe(true);
    for (const parallel of [1, 4]) expect((await expand(packed, 10_007, parallel)).equals(data)).toBe(true);
  });
});

test("marks are found wherever the chunks end", async () => {
  const data = noise(gzipPieceBytes + 40);
  const packed = await compress(data);
  const end = packed.length - 80;
  for (let cut = end; cut < packed.length; cut++) {
    const chunks = (async function* () {
      yield packed.subarray(0, cut);
      yield packed.subarray(cut);
    })();
    expect((await gather(gunzipPieces(chunks, 2, refuse))).equals(data)).toBe(true);
  }
});

test("a stream that is cut off anywhere, or changed, fails", async () => {
  const packed = await compress(noiseWithMarks(2 * gzipPieceBytes + 5, 400_000));
  for (const cut of [100, 400_000, packed.length >> 1, packed.length - 11, packed.length - 1]) {
    await expect(expand(packed.subarray(0, cut))).rejects.toThrow();
  }
  for (const at of [500, packed.length >> 1, packed.length - 7, packed.length - 2]) {
    const changed = Buffer.from(packed);
    changed[at] = (changed[at] ?? 0) ^ 0x55;
    await expect(expand(changed)).rejects.toThrow();
  }
});

test("a source's failure comes out as it is", async () => {
  const packed = await compress(noise(2 * gzipPieceBytes));
  async function* failing() {
    yield packed.subarray(0, gzipPieceBytes + 1000);
    throw new Error("the network is gone");
  }
  await expect(gather(gunzipPieces(failing(), 3, refuse))).rejects.toThrow("the network is gone");
});

test("streams of other makers are left to the other reader, with all their bytes", async () => {
  const foreign = gzipSync(noise(1000));
  const named = Buffer.concat([foreign.subarray(0, 3), Uint8Array.of(16), foreign.subarray(4, 10)]);
  const commented = Buffer.concat([named, Buffer.from("made elsewhere\0"), foreign.subarray(10)]);
  for (const bytes of [foreign, commented, foreign.subarray(0, 5), Buffer.alloc(0)]) {
    expect((await gather(gunzipPieces(pieces(bytes, 7), 3, (whole) => whole))).equals(bytes)).toBe(true);
  }
});
