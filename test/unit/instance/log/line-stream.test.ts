import { describe, expect, it } from "vitest";
import { LineStream } from "../../../../src/instance/log/line-stream.ts";
import { createRecordEncoder } from "../../../../src/instance/log/record-encoder.ts";

function run(text: string, pieceBytes: number, maxLineBytes = 10) {
  const lines: string[] = [];
  const lost: number[] = [];
  const stream = new LineStream({
    onLine: (line) => lines.push(line),
    onTooLong: (bytes) => lost.push(bytes),
    maxLineBytes,
  });
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += pieceBytes) stream.push(bytes.subarray(at, at + pieceBytes));
  stream.flush();
  return { lines, lost };
}

describe.each([1, 3, 100])("lines in pieces of %i bytes", (piece) => {
  it("cuts at newlines, keeps empty lines and what follows the last newline", () => {
    expect(run("a\n\nbü\r\ncd", piece)).toEqual({ lines: ["a", "", "bü", "cd"], lost: [] });
  });

  it("loses only the line that is too long", () => {
    expect(run("1234567890\n12345678901\nok\n", piece)).toEqual({ lines: ["1234567890", "ok"], lost: [11] });
  });
});

describe("record encoder", () => {
  it("writes the keys it was told", () => {
    const encode = createRecordEncoder({
      podName: "c-1",
      levelKey: "severity",
      timestampKey: "time",
      timestamp: () => "2026-11-30T00:00:00Z",
    });
    expect(encode("postgres", "record", { record: { message: "m" } })).toBe(
      '{"severity":"info","time":"2026-11-30T00:00:00Z","logger":"postgres","msg":"record","logging_pod":"c-1","record":{"message":"m"}}',
    );
  });
});
