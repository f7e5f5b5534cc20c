import { describe, expect, test } from "vitest";
import { type ArchiveRecord, formatArchiveRecord, parseArchiveRecord } from "../../../src/barman/archive-record.ts";
import {
  checkDrain,
  decideArchiveRequest,
  decideEmptyArchive,
  decideExisting,
  decideHashedRequest,
} from "../../../src/barman/archive-request.ts";
import { classifyWalFailure } from "../../../src/barman/failure-class.ts";
import { chooseLookAhead, choosePrefetch, readyNames } from "../../../src/barman/look-ahead.ts";
import { WalEnds } from "../../../src/barman/wal-end.ts";

const name = "000000010000000000000003";
const record: ArchiveRecord = {
  systemId: "7364512345678901234",
  name,
  size: 16_777_216,
  inode: "77",
  mtimeNs: "1700000000000000001",
  sha256: "aa",
  target: "there",
  key: "p/srv/wals/0000000100000000/000000010000000000000003.gz",
  checksum: "md5:bb",
};
const file = { size: record.size, inode: record.inode, mtimeNs: record.mtimeNs };
const context = { name, target: "there", systemId: record.systemId };

describe("record", () => {
  test("is read back, and half of one is none", () => {
    const text = formatArchiveRecord(record);
    expect(parseArchiveRecord(text)).toEqual(record);
    expect(parseArchiveRecord(text.slice(0, -10))).toBeUndefined();
    expect(parseArchiveRecord("")).toBeUndefined();
    expect(parseArchiveRecord("null")).toBeUndefined();
    expect(parseArchiveRecord(text.replace('"format":1', '"format":2'))).toBeUndefined();
    expect(parseArchiveRecord(text.replace("16777216", '"16777216"'))).toBeUndefined();
  });
});

describe("request", () => {
  test.each([
    ["the same file", record, file, context, "acknowledged", undefined],
    ["no record", undefined, file, context, "upload", false],
    ["a touched file", record, { ...file, mtimeNs: "1" }, context, "hash", undefined],
    ["a copy of it", record, { ...file, inode: "1" }, context, "hash", undefined],
    ["another size", record, { ...file, size: 1 }, context, "upload", true],
    ["another archive", record, file, { ...context, target: "elsewhere" }, "upload", true],
    ["another system", record, file, { ...context, systemId: "1" }, "upload", true],
    ["an unknown system", record, file, { ...context, systemId: undefined }, "acknowledged", undefined],
    ["another name", record, file, { ...context, name: "000000010000000000000004" }, "upload", true],
  ])("%s", (_what, known, state, asked, kind, discardRecord) => {
    const decision = decideArchiveRequest(known, state, asked);
    expect(decision.kind).toBe(kind);
    if (decision.kind === "upload") expect(decision.discardRecord).toBe(discardRecord);
  });

  test("the hash decides", () => {
    expect(decideHashedRequest(record, "aa").kind).toBe("acknowledged");
    expect(decideHashedRequest(record, "ab")).toMatchObject({ kind: "upload", discardRecord: true });
  });
});

describe("an object of the same name", () => {
  test.each([
    ["nothing there", [], "absent"],
    [
      "a partial or label of it is another file",
      [{ objectName: `${name}.partial` }, { objectName: `${name}.00000028.backup` }],
      "absent",
    ],
    ["equal bytes under another suffix", [{ objectName: `${name}.zst`, sha256: "aa" }], "same"],
    ["other bytes", [{ objectName: `${name}.gz`, sha256: "ab" }], "different"],
    ["bytes nobody hashed", [{ objectName: `${name}.gz` }], "compare"],
    [
      "one of two differs",
      [
        { objectName: name, sha256: "aa" },
        { objectName: `${name}.gz`, sha256: "ab" },
      ],
      "different",
    ],
    ["one of two is unknown", [{ objectName: name, sha256: "aa" }, { objectName: `${name}.gz` }], "compare"],
  ])("%s", (_what, objects, kind) => {
    expect(decideExisting(name, "aa", objects).kind).toBe(kind);
  });
});

describe("empty archive", () => {
  const local = new Set([name, "000000010000000000000004"]);
  test.each([
    ["no object", [], "empty"],
    ["objects that are no WAL", ["README", "0000000100000000"], "empty"],
    ["only our own name", [`${name}.gz`], "compare"],
    ["a name we do not have", [`${name}.gz`, "000000010000000000000001"], "filled"],
    ["somebody's history", ["00000002.history"], "filled"],
    ["a partial segment", [`${name}.partial.gz`], "filled"],
  ])("%s", (_what, objects, kind) => {
    expect(decideEmptyArchive(objects, local).kind).toBe(kind);
  });

  test("more than a first lane leaves behind is not compared", () => {
    const names = Array.from({ length: 9 }, (_, at) => `00000001000000000000000${at}`);
    expect(decideEmptyArchive(names, new Set(names)).kind).toBe("filled");
  });
});

describe("former primary", () => {
  const limit = { history: [{ timeline: 1, switchPoint: 0x5000100n, reason: "" }], segmentBytes: 16 << 20 };
  test.each([
    ["000000010000000000000003", true],
    ["000000010000000000000004", true],
    ["000000010000000000000005", false],
    ["000000010000000000000006", false],
    ["000000010000000000000004.partial", false],
    ["000000010000000000000004.00000028.backup", true],
    ["000000010000000000000005.00000028.backup", false],
    ["000000020000000000000003", false],
    ["00000001.history", true],
    ["00000002.history", false],
    ["nonsense", false],
  ])("%s may be sent: %s", (file, allowed) => {
    expect(checkDrain(file, limit) === null).toBe(allowed);
  });

  test("a segment that ends exactly at the switch is common to both", () => {
    const exact = { ...limit, history: [{ timeline: 1, switchPoint: 0x5000000n, reason: "" }] };
    expect(checkDrain("000000010000000000000004", exact)).toBeNull();
    expect(checkDrain("000000010000000000000005", exact)).not.toBeNull();
  });
});

describe("look ahead", () => {
  const ready = readyNames([
    "000000010000000000000005.ready",
    "000000010000000000000004.ready",
    "000000010000000000000002.ready",
    "000000010000000000000003.ready",
    "000000010000000000000001.done",
    "000000010000000000000006.partial.ready",
    "000000010000000000000004.00000028.backup.ready",
    "000000020000000000000006.ready",
    "00000002.history.ready",
  ]);
  const choose = (ahead: number, taken: string[] = [], requested = name) =>
    chooseLookAhead({ requested, ready, taken: new Set(taken), ahead }).map((each) => each.slice(-1));

  test("whole segments of the timeline, ascending, after the requested one", () => {
    expect(choose(5)).toEqual(["4", "5"]);
    expect(choose(1)).toEqual(["4"]);
    expect(choose(0)).toEqual([]);
  });

  test("what is under way counts", () => {
    expect(choose(2, ["000000010000000000000004"])).toEqual(["5"]);
    expect(choose(1, ["000000010000000000000004"])).toEqual([]);
    expect(choose(2, ["000000010000000000000002"])).toEqual(["4", "5"]);
  });

  test("after a history or label nothing is taken", () => {
    expect(choose(5, [], "00000002.history")).toEqual([]);
    expect(choose(5, [], "000000010000000000000002.partial")).toEqual([]);
  });

  test.each([
    [16 << 20, "0000000100000000000000FE", ["0000000100000000000000FF", "000000010000000100000000"]],
    [64 << 20, "00000001000000000000003E", ["00000001000000000000003F", "000000010000000100000000"]],
    [1 << 20, "000000010000000000000FFE", ["000000010000000000000FFF", "000000010000000100000000"]],
  ])("recovery's next names with segments of %i bytes", (size, requested, names) => {
    expect(choosePrefetch(requested, 2, size)).toEqual(names);
    expect(choosePrefetch("00000002.history", 2, size)).toEqual([]);
  });
});

describe("end of WAL", () => {
  test("a miss on one timeline says nothing of another", () => {
    const ends = new WalEnds();
    ends.note("00000001000000000000000D");
    expect(ends.take("00000002000000000000000C")).toBe(false);
    expect(ends.take("00000001000000000000000C")).toBe(false);
    expect(ends.take("00000001000000000000000D")).toBe(true);
    expect(ends.take("00000001000000000000000D")).toBe(false);
  });

  test("the first miss counts, other files neither set nor use it, and it is dropped when the archive grew", () => {
    const ends = new WalEnds();
    ends.note("00000001000000000000000E");
    ends.note("00000001000000000000000D");
    ends.note("00000002.history");
    ends.note("00000001000000000000000A.partial");
    expect(ends.take("00000002.history")).toBe(false);
    ends.seen("00000001000000000000000C");
    ends.seen("00000001000000000000000F");
    expect(ends.take("00000001000000000000000D")).toBe(false);
  });
});

test.each([
  ["notFound", "NOT_FOUND", false],
  ["endOfWal", "OUT_OF_RANGE", false],
  ["badName", "INVALID_ARGUMENT", false],
  ["unavailable", "UNAVAILABLE", true],
  ["denied", "UNAVAILABLE", true],
  ["conflict", "FAILED_PRECONDITION", false],
  ["local", "INTERNAL", false],
] as const)("%s is %s on the wire", (kind, grpc, retryable) => {
  expect(classifyWalFailure(kind)).toMatchObject({ grpc, retryable });
});
