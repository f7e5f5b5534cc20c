import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nameLogColumns } from "../../../src/instance/log/csv-record.ts";
import { CsvStream } from "../../../src/instance/log/csv-stream.ts";

/** A record as PostgreSQL writes it: texts are always in quotes. */
function record(message: string): string {
  const values = Array.from({ length: 26 }, () => "");
  values[0] = "2026-11-30 00:03:26.212 UTC";
  values[1] = '"app"';
  values[13] = `"${message.replaceAll('"', '""')}"`;
  values[22] = '"psql"';
  return `${values.join(",")}\n`;
}

function read(bytes: Buffer, cuts: readonly number[]): string[] {
  const messages: string[] = [];
  const stream = new CsvStream({
    onRecord: (values) => {
      const named = nameLogColumns(values);
      if (named) messages.push(named["message"] ?? "");
      return named !== undefined;
    },
    onBroken: () => undefined,
  });
  let at = 0;
  for (const cut of [...cuts.map((part) => Math.floor(part * bytes.length)).sort((a, b) => a - b), bytes.length]) {
    stream.push(bytes.subarray(at, cut));
    at = Math.max(at, cut);
  }
  return messages;
}

const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 8 });
const hard = fc.string({ unit: fc.constantFrom('"', ",", "\n", "a", "ü", "\\", "2026-11-30 00:03:26.212 UTC,") });

describe("PostgreSQL's CSV log", () => {
  it("comes out whole, whatever the messages are and wherever the stream is cut", () => {
    fc.assert(
      fc.property(fc.array(hard, { maxLength: 6 }), cuts, (messages, where) => {
        expect(read(Buffer.from(messages.map(record).join("")), where)).toEqual(messages);
      }),
      { numRuns: 500 },
    );
  });

  it("recovers from any broken text between records", () => {
    const garbage = fc.string({ unit: fc.constantFrom('"', ",", "a", "\n", "2026-11-30 ") });
    fc.assert(
      fc.property(garbage, cuts, (broken, where) => {
        const text = `${record("before")}${broken}\n${record("one")}${record("two")}${record("three")}`;
        const messages = read(Buffer.from(text), where);
        expect(messages[0]).toBe("before");
        expect(messages.slice(-2)).toEqual(["two", "three"]);
      }),
      { numRuns: 1000 },
    );
  });

  it("recovers wherever a piece of it was lost", () => {
    const piece = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(hard, piece, piece, cuts, (message, from, length, where) => {
        const lossy = Buffer.from(record("before") + record(message) + record(message));
        const start = Math.floor(from * lossy.length);
        const end = start + Math.floor(length * (lossy.length - start));
        const bytes = Buffer.concat([
          lossy.subarray(0, start),
          lossy.subarray(end),
          Buffer.from(record("one") + record("two") + record("three")),
        ]);
        expect(read(bytes, where).slice(-1)).toEqual(["three"]);
      }),
      { numRuns: 1000 },
    );
  });
});
