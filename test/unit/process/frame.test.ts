import fc from "fast-check";
import { expect, test } from "vitest";
import { encodeFrame, FrameReader, maxFrameBytes } from "../../../src/process/frame.ts";

test("a frame has four bytes of length and fields joined by NUL", () => {
  expect(encodeFrame(["hello", "1"])).toEqual(Buffer.from("\0\0\0\x07hello\x001"));
});

test("frames come out whole whatever the chunks", () => {
  const field = fc.string({ unit: "grapheme" }).filter((text) => !text.includes("\0"));
  const frames = fc.array(fc.array(field, { minLength: 1 }), { maxLength: 5 });
  fc.assert(
    fc.property(frames, fc.integer({ min: 1, max: 7 }), (sent, size) => {
      const bytes = Buffer.concat(sent.map((fields) => encodeFrame(fields)));
      const reader = new FrameReader();
      const received: string[][] = [];
      for (let at = 0; at < bytes.length; at += size) received.push(...reader.push(bytes.subarray(at, at + size)));
      expect(received).toEqual(sent);
    }),
  );
});

test("a frame that is too long is refused on both sides", () => {
  expect(() => encodeFrame(["x".repeat(maxFrameBytes + 1)])).toThrow(/longer than/);
  const header = Buffer.alloc(4);
  header.writeUInt32BE(maxFrameBytes + 1);
  expect(() => new FrameReader().push(header)).toThrow(/longer than/);
});
