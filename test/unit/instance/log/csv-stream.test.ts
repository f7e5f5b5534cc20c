import { describe, expect, it } from "vitest";
import { nameLogColumns, splitCsv } from "../../../../src/instance/log/csv-record.ts";
import { CsvStream } from "../../../../src/instance/log/csv-stream.ts";

/** One CSV line as PostgreSQL writes it, with so many columns. */
function line(message: string, columns = 26, time = "2026-11-30 00:03:26.212 UTC"): string {
  const values = Array.from({ length: columns }, () => "");
  values[0] = time;
  values[1] = '"postgres"';
  values[13] = `"${message.replaceAll('"', '""')}"`;
  return `${values.join(",")}\n`;
}

function collect(maxRecordBytes?: number) {
  const messages: string[] = [];
  const broken: string[] = [];
  const stream = new CsvStream({
    onRecord: (values) => {
      const record = nameLogColumns(values);
      if (record) messages.push(record["message"] ?? "");
      return record !== undefined;
    },
    onBroken: (reason) => broken.push(reason),
    ...(maxRecordBytes === undefined ? {} : { maxRecordBytes }),
  });
  return { stream, messages, broken };
}

/** Pushes the text in pieces of the given size. */
function run(text: string, pieceBytes: number, maxRecordBytes?: number) {
  const { stream, messages, broken } = collect(maxRecordBytes);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += pieceBytes) stream.push(bytes.subarray(at, at + pieceBytes));
  return { messages, broken };
}

describe.each([1, 7, 64, 100_000])("CSV log in pieces of %i bytes", (piece) => {
  it("reads records with quotes, newlines, commas and characters of several bytes", () => {
    const messages = ["plain", 'said "x", then\nwent on,\n"" end', "größer 💾", ""];
    expect(run(messages.map((message) => line(message)).join(""), piece)).toEqual({ messages, broken: [] });
  });

  it.each([23, 24, 26])("accepts records of %i columns", (columns) => {
    expect(run(line("a", columns) + line("b", columns), piece).messages).toEqual(["a", "b"]);
  });

  it("loses only the broken line when its number of columns is wrong", () => {
    const result = run(`${line("a")}not a record\n${line("b", 25)}${line("c")}`, piece);
    expect(result.messages).toEqual(["a", "c"]);
    expect(result.broken).toHaveLength(2);
  });

  it("loses only the broken line when it ends inside quotes", () => {
    const torn = line("torn")
      .trimEnd()
      .replace(/"[^"]*$/, "");
    const result = run(`${line("a")}${torn}\n${line("b")}${line("c\nd")}`, piece);
    expect(result.messages).toEqual(["a", "b", "c\nd"]);
    expect(result.broken).toHaveLength(1);
  });

  it("starts anew when the beginning of the stream was lost in the middle of a record", () => {
    const rest = line('first, "quoted"\nsecond line').slice(60);
    expect(run(`${rest}${line("a")}${line("b")}`, piece).messages).toEqual(["a", "b"]);
  });

  it("drops a record that is too long and keeps the ones around it", () => {
    const result = run(`${line("a")}${line(`x\n"y"${"z".repeat(5000)}\n`)}${line("b")}`, piece, 1000);
    expect(result.messages).toEqual(["a", "b"]);
    expect(result.broken).toEqual(["record is too long"]);
  });

  it("recovers when the quotes of a record that is too long are not paired", () => {
    const torn = line(`x${"z".repeat(5000)}`)
      .trimEnd()
      .replace(/"[^"]*$/, "");
    expect(run(`${line("a")}${torn}\n${line("b")}${line("c")}`, piece, 1000).messages.slice(-1)).toEqual(["c"]);
  });
});

describe("a record of almost 1 MiB", () => {
  it("comes through whole", () => {
    const message = "q".repeat(1024 * 1024 - 200);
    expect(run(line(message) + line("next"), 65_536).messages).toEqual([message, "next"]);
  });
});

describe("splitCsv", () => {
  it.each([
    ["", [""]],
    ["a,b", ["a", "b"]],
    [",", ["", ""]],
    ['"a ""b"" c",""', ['a "b" c', ""]],
  ])("splits %j", (text, values) => {
    expect(splitCsv(text)).toEqual(values);
  });

  it.each(['"open', '"a"b', 'a"b', '"a""'])("refuses %j", (text) => {
    expect(splitCsv(text)).toBeUndefined();
  });
});

describe("nameLogColumns", () => {
  it("leaves empty values out and refuses other widths", () => {
    const values = Array.from({ length: 26 }, (_, index) => (index === 11 ? "LOG" : index === 25 ? "0" : ""));
    expect(nameLogColumns(values)).toEqual({ error_severity: "LOG", query_id: "0" });
    expect(nameLogColumns(values.slice(1))).toBeUndefined();
  });
});
