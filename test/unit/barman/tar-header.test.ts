import { describe, expect, test } from "vitest";
import {
  formatTarHeader,
  parsePaxRecords,
  parsePaxSeconds,
  parseTarHeader,
  type TarEntry,
  tarEnd,
  tarPadding,
} from "../../../src/barman/tar-header.ts";

const entry: TarEntry = {
  name: "base/1/1259",
  kind: "file",
  mode: 0o600,
  uid: 26,
  gid: 26,
  size: 8192,
  mtimeNs: 1_777_000_000_000_000_000n,
  linkName: "",
};

describe("formatTarHeader", () => {
  test("writes one ustar block for what fits into it", () => {
    const block = Buffer.from(formatTarHeader(entry));
    expect(block.length).toBe(512);
    expect(block.toString("latin1", 257, 265)).toBe("ustar\u000000");
    expect(block.toString("latin1", 124, 136)).toBe("00000020000\0");
    expect(parseTarHeader(block)).toMatchObject({ name: "base/1/1259", size: 8192, mtime: 1_777_000_000, type: "0" });
  });

  test("writes a folder with a slash", () => {
    expect(parseTarHeader(formatTarHeader({ ...entry, kind: "directory", name: "./base", size: 0 }))).toMatchObject({
      name: "./base/",
      type: "5",
    });
  });

  test("puts an extended header before it for a fraction of a second", () => {
    const bytes = Buffer.from(formatTarHeader({ ...entry, mtimeNs: entry.mtimeNs + 250_000_000n }));
    expect(bytes.length).toBe(3 * 512);
    expect(parseTarHeader(bytes.subarray(0, 512))).toMatchObject({ name: "././@PaxHeader", type: "x", size: 23 });
    expect(parsePaxRecords(bytes.subarray(512, 512 + 23))).toEqual(new Map([["mtime", "1777000000.25"]]));
  });
});

describe("parseTarHeader", () => {
  const block = () => Buffer.from(formatTarHeader(entry));
  const resum = (header: Buffer) => {
    header.write("        ", 148, "latin1");
    const sum = header.reduce((all, byte) => all + byte, 0);
    header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
    return header;
  };

  test("tells the end from a damaged header", () => {
    expect(parseTarHeader(new Uint8Array(512))).toBe("end");
    const damaged = block();
    damaged[0] = 0x7a;
    expect(parseTarHeader(damaged)).toEqual({ error: "its checksum is wrong" });
  });

  test("reads GNU's binary sizes", () => {
    const header = block();
    header.fill(0, 124, 136);
    header[124] = 0x80;
    header.writeUIntBE(10_000_000_000, 130, 6);
    expect(parseTarHeader(resum(header))).toMatchObject({ size: 10_000_000_000 });
  });

  test("joins the two parts of a POSIX name, and not GNU's", () => {
    const header = block();
    header.write("some/folder", 345, "latin1");
    expect(parseTarHeader(resum(header))).toMatchObject({ name: "some/folder/base/1/1259" });
    header.write("ustar  \0", 257, "latin1");
    expect(parseTarHeader(resum(header))).toMatchObject({ name: "base/1/1259" });
  });
});

test("the end fills up to a whole record", () => {
  expect(tarEnd(0).length).toBe(10_240);
  expect(tarEnd(10_240 - 1024).length).toBe(1024);
  expect(tarEnd(10_240 - 512).length).toBe(512 + 10_240);
  expect([0, 1, 511, 512, 513].map(tarPadding)).toEqual([0, 511, 1, 0, 511]);
});

test.each([
  ["1.5", 1_500_000_000n],
  ["-1.5", -1_500_000_000n],
  ["12", 12_000_000_000n],
  ["1.1234567891", 1_123_456_789n],
  ["x", undefined],
])("reads %s seconds", (text, nanos) => {
  expect(parsePaxSeconds(text)).toBe(nanos);
});

test("records that are cut off are damaged", () => {
  expect(parsePaxRecords(Buffer.from("26 mtime=1777000000.25\n"))).toBeUndefined();
  expect(parsePaxRecords(Buffer.from("x"))).toBeUndefined();
});
