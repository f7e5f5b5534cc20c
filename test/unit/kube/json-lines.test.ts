import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readLines } from "../../../src/kube/json-lines.ts";

async function* chunked(bytes: Uint8Array, sizes: readonly number[]) {
  let start = 0;
  for (let i = 0; start < bytes.length; i++) {
    const size = sizes[i % sizes.length] ?? 1;
    yield bytes.subarray(start, start + size);
    start += size;
  }
}

async function collect(source: AsyncIterable<Uint8Array>) {
  const lines = [];
  for await (const line of readLines(source)) lines.push(line);
  return lines;
}

describe("readLines", () => {
  it("gives the same lines however the bytes are cut, also inside characters", async () => {
    const line = fc
      .string({ unit: "binary", minLength: 1 })
      .map((text) => JSON.stringify({ text, fixed: "Zürich 🐘" }));
    await fc.assert(
      fc.asyncProperty(
        fc.array(line),
        fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 }),
        async (lines, sizes) => {
          const bytes = Buffer.from(lines.map((text) => `${text}\n`).join(""));
          const expected = lines.map((text) => ({ text: Buffer.from(text).toString(), truncated: false }));
          expect(await collect(chunked(bytes, sizes))).toEqual(expected);
        },
      ),
    );
  });

  it("marks a rest without newline, skips blank lines and tells of every piece of data", async () => {
    let pieces = 0;
    const lines = [];
    for await (const line of readLines(chunked(Buffer.from('{"a":1}\n\n{"b":'), [5]), () => pieces++)) lines.push(line);
    expect(lines).toEqual([
      { text: '{"a":1}', truncated: false },
      { text: '{"b":', truncated: true },
    ]);
    expect(pieces).toBe(3);
  });
});
