import { describe, expect, test } from "vitest";
import {
  compressionSuffix,
  hasMagic,
  parseCompression,
  parseCompressionLevel,
  splitCompressionSuffix,
} from "../../../src/barman/compression.ts";
import { formatDestination, parseDestination } from "../../../src/barman/destination.ts";
import { checkBackupName, formatBackupId, parseTarName, serverKeys } from "../../../src/barman/object-keys.ts";
import { normalizeWalName, parseArchivedWal, rankRestoreCandidates } from "../../../src/barman/wal-names.ts";

describe("destination", () => {
  test.each([
    ["s3://bucket/a/b", { provider: "s3", bucket: "bucket", path: "a/b" }],
    ["s3://bucket//a/b/", { provider: "s3", bucket: "bucket", path: "a/b" }],
    ["s3://bucket", { provider: "s3", bucket: "bucket", path: "" }],
    [
      "s3://arn:aws:s3:us-west-2:123456789012:accesspoint/test/a",
      { provider: "s3", bucket: "arn:aws:s3:us-west-2:123456789012:accesspoint/test", path: "a" },
    ],
    ["gs://bucket/a/", { provider: "gcs", bucket: "bucket", path: "a" }],
    ["https://console.cloud.google.com/storage/browser/bucket/a", { provider: "gcs", bucket: "bucket", path: "a" }],
    [
      "https://acct.blob.core.windows.net/box/a/b",
      {
        provider: "azure",
        bucket: "box",
        path: "a/b",
        azure: { endpoint: "https://acct.blob.core.windows.net", account: "acct", emulator: false },
      },
    ],
    [
      "http://127.0.0.1:10000/devstore/box/a",
      {
        provider: "azure",
        bucket: "box",
        path: "a",
        azure: { endpoint: "http://127.0.0.1:10000/devstore", account: "devstore", emulator: true },
      },
    ],
    ["file:///srv/archive/", { provider: "folder", bucket: "/srv/archive", path: "" }],
  ])("%s", (text, expected) => {
    expect(parseDestination(text)).toEqual(expected);
  });

  test.each([
    "",
    "bucket/path",
    "s3://",
    "gs:///x",
    "ftp://x/y",
    "https://acct.blob.core.windows.net/",
    "http://h/only",
  ])("%j is refused with a text that shows it", (text) => {
    expect(parseDestination(text)).toEqual({ error: expect.stringContaining(JSON.stringify(text)) });
  });

  test("is written as a URL without trailing slashes", () => {
    const destination = parseDestination("s3://bucket/a/b//");
    expect("error" in destination ? "" : formatDestination(destination)).toBe("s3://bucket/a/b");
  });
});

describe("keys", () => {
  const keys = serverKeys("a/b", "srv");

  test.each([
    [keys.wal("0000000100000002000000FF"), "a/b/srv/wals/0000000100000002/0000000100000002000000FF"],
    [keys.wal("0000000100000002000000FF", "gzip"), "a/b/srv/wals/0000000100000002/0000000100000002000000FF.gz"],
    [
      keys.wal("0000000100000002000000FF.partial", "zstd"),
      "a/b/srv/wals/0000000100000002/0000000100000002000000FF.partial.zst",
    ],
    [
      keys.wal("0000000100000002000000FF.00000028.backup", "snappy"),
      "a/b/srv/wals/0000000100000002/0000000100000002000000FF.00000028.backup.snappy",
    ],
    [keys.wal("00000002.history", "lz4"), "a/b/srv/wals/00000002.history.lz4"],
    [keys.backupInfo("20260501T101112"), "a/b/srv/base/20260501T101112/backup.info"],
    [keys.tar("20260501T101112", "data", 0, "gzip"), "a/b/srv/base/20260501T101112/data.tar.gz"],
    [keys.tar("20260501T101112", "data", 2), "a/b/srv/base/20260501T101112/data_0002.tar"],
    [keys.tar("20260501T101112", "16390", 1, "bzip2"), "a/b/srv/base/20260501T101112/16390_0001.tar.bz2"],
    [keys.keep("20260501T101112"), "a/b/srv/base/20260501T101112/annotations/keep"],
    [serverKeys("", "srv").prefix, "srv/"],
    [serverKeys("/a/b/", "srv").prefix, "a/b/srv/"],
  ])("%s", (key, expected) => {
    expect(key).toBe(expected);
  });

  test("a keep annotation is looked for under both spellings", () => {
    expect(keys.keepSpellings("X")).toEqual(["a/b/srv/base/X/annotations/keep", "a/b//srv/base/X/annotations/keep"]);
  });

  test("names that are none of PostgreSQL's have no key, and no server no prefix", () => {
    expect(() => keys.wal("../x")).toThrow("not the name of a WAL file");
    expect(() => serverKeys("a", "")).toThrow("server name is empty");
  });

  test.each([
    ["data.tar", { name: "data", part: 0, suffix: "" }],
    ["data_0012.tar.gz", { name: "data", part: 12, suffix: ".gz" }],
    ["16390.tar.snappy", { name: "16390", part: 0, suffix: ".snappy" }],
    ["backup.info", undefined],
    ["data.tar.gz.old", undefined],
  ])("tar name %s", (name, expected) => {
    expect(parseTarName(name)).toEqual(expected);
  });

  test("backup IDs and names", () => {
    expect(formatBackupId(Date.parse("2026-05-01T10:11:12.999Z"))).toBe("20260501T101112");
    expect(checkBackupName("backup-20260501101112")).toBeNull();
    for (const name of ["", "20260501T101112", "latest", "last-failed", "auto"])
      expect(checkBackupName(name)).not.toBeNull();
  });
});

describe("names of archived WAL", () => {
  test.each([
    ["0000000100000002000000FF", "segment", undefined],
    ["0000000100000002000000ff.gz", "segment", "gzip"],
    ["0000000100000002000000FF.partial.bz2", "partial", "bzip2"],
    ["0000000100000002000000FF.00000028.backup.xz", "backupLabel", "xz"],
    ["00000002.history", "history", undefined],
    ["00000002.history.zst", "history", "zstd"],
  ])("%s is a %s", (objectName, kind, compression) => {
    expect(parseArchivedWal(objectName)).toMatchObject({ kind, compression });
  });

  test.each([
    "0000000100000002000000FF.gz.gz",
    "0000000100000002000000FF.PARTIAL",
    "0000000100000002000000F",
    "00000001",
    "00000001X",
    ".gz",
    "0000000100000002000000FF.foo",
  ])("%s is none", (objectName) => {
    expect(parseArchivedWal(objectName)).toBeUndefined();
  });

  test("hex digits of either case mean the same name", () => {
    expect(normalizeWalName("00000001000000020000abcd")).toBe("00000001000000020000ABCD");
    expect(normalizeWalName("00000001000000020000abcd.0000002a.backup")).toBe(
      "00000001000000020000ABCD.0000002A.backup",
    );
  });

  test("a complete file comes before a partial one, labels never", () => {
    const name = "0000000100000002000000FF";
    const objects = [`${name}.00000028.backup`, `${name}.partial`, `${name}.partial.bz2`, `${name}.zst`];
    expect(rankRestoreCandidates(name, objects).map(({ objectName }) => objectName)).toEqual([
      `${name}.zst`,
      `${name}.partial`,
      `${name}.partial.bz2`,
    ]);
    expect(rankRestoreCandidates(name, objects, { partial: false })).toHaveLength(1);
    expect(rankRestoreCandidates(`${name}.partial`, objects)).toHaveLength(2);
  });
});

describe("compression", () => {
  test.each([
    ["gzip", ".gz", [0x1f, 0x8b, 0x08]],
    ["bzip2", ".bz2", [0x42, 0x5a, 0x68]],
    ["xz", ".xz", [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00]],
    ["zstd", ".zst", [0x28, 0xb5, 0x2f, 0xfd]],
    ["lz4", ".lz4", [0x04, 0x22, 0x4d, 0x18]],
    ["snappy", ".snappy", [0xff, 0x06, 0x00, 0x00, 0x73, 0x4e, 0x61, 0x50, 0x70, 0x59]],
  ])("%s", (name, suffix, magic) => {
    const compression = parseCompression(name);
    expect(compressionSuffix(compression)).toBe(suffix);
    expect(splitCompressionSuffix(`x${suffix}`)).toEqual({ bare: "x", compression });
    expect(compression && hasMagic(compression, Uint8Array.from(magic))).toBe(true);
  });

  test("levels have names", () => {
    expect(parseCompressionLevel("gzip", "high")).toBe(9);
    expect(parseCompressionLevel("zstd", "medium")).toBe(4);
    expect(parseCompressionLevel("xz", "7")).toBe(7);
    expect(parseCompressionLevel("gzip", "fast")).toBeUndefined();
    expect(parseCompressionLevel("snappy", "low")).toBeUndefined();
    expect(parseCompression("none")).toBeUndefined();
    expect(parseCompression("constructor")).toBeUndefined();
  });
});
