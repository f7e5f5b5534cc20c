import { describe, expect, test } from "vitest";
import { findMissingWal, type NeededWal, neededWalOf } from "../../../src/barman/needed-wal.ts";
import { chooseUploadSizes } from "../../../src/barman/upload-sizes.ts";

const mebibyte = 1024 ** 2;
const needed: NeededWal = {
  beginTimeline: 1,
  beginLsn: 0x5000028n,
  endTimeline: 1,
  endLsn: 0x7000100n,
  segmentBytes: 16 * mebibyte,
};

describe("findMissingWal", () => {
  test("looks for each segment of the range, whatever its compression", () => {
    expect(findMissingWal(needed, ["000000010000000000000005.gz", "000000010000000000000007"])).toEqual([
      "000000010000000000000006",
    ]);
    expect(findMissingWal(needed, [])).toHaveLength(3);
  });

  test("needs nothing of a segment that the end only touches", () => {
    const atEdge = { ...needed, endLsn: 0x7000000n };
    expect(findMissingWal(atEdge, ["000000010000000000000005", "000000010000000000000006"])).toEqual([]);
  });

  test("takes the part that a promotion leaves for the last segment only", () => {
    const names = ["000000010000000000000005", "000000010000000000000006"];
    expect(findMissingWal(needed, [...names, "000000010000000000000007.partial"])).toEqual([]);
    expect(
      findMissingWal(needed, [
        "000000010000000000000005",
        "000000010000000000000006.partial",
        "000000010000000000000007",
      ]),
    ).toEqual(["000000010000000000000006"]);
  });

  test("finds segments on either side of a switch of timelines", () => {
    const across = { ...needed, endTimeline: 2 };
    const names = ["000000010000000000000005", "000000020000000000000006", "000000020000000000000007"];
    expect(findMissingWal(across, names)).toEqual([]);
    expect(findMissingWal(across, ["000000020000000000000006"])).toEqual([
      "000000020000000000000005",
      "000000020000000000000007",
    ]);
  });

  test("counts by the size of a segment", () => {
    const small = { ...needed, beginLsn: 0xffff_fff0n, endLsn: 0x1_0000_0010n, segmentBytes: mebibyte };
    expect(findMissingWal(small, [])).toEqual(["000000010000000000000FFF", "000000010000000100000000"]);
  });
});

test("a backup.info without an end tells nothing", () => {
  const info = {
    beginXlog: 1n,
    endXlog: 2n,
    endWal: "000000020000000000000001",
    timeline: 1,
    xlogSegmentSize: mebibyte,
  };
  expect(neededWalOf(info)).toMatchObject({ beginTimeline: 1, endTimeline: 2 });
  expect(neededWalOf({ ...info, endWal: null })).toBeUndefined();
});

test("parts are large enough for the archive and small enough for memory", () => {
  // Whatever the size of the database: memory is bounded, and twice an archive fits into the parts.
  const sizes = chooseUploadSizes({ expectedBytes: 50 * 1024 ** 4, jobs: 8 });
  expect(sizes).toEqual({ archiveBytes: 24 * 1024 ** 3, partBytes: 5 * 1024 ** 2, concurrency: 8 });
  expect(sizes.partBytes * 10_000).toBeGreaterThan(2 * sizes.archiveBytes);
  const asBarman = { maxArchiveBytes: 100 * 1024 ** 3, jobs: 8 };
  expect(chooseUploadSizes(asBarman)).toMatchObject({ partBytes: 21_474_836, concurrency: 2 });
  expect(chooseUploadSizes({ expectedBytes: 10 * 1024 ** 3, jobs: 8 })).toMatchObject({
    partBytes: 5 * mebibyte,
    concurrency: 8,
  });
  expect(chooseUploadSizes({ maxArchiveBytes: 5 * 1024 ** 4 })).toMatchObject({
    archiveBytes: 1024 ** 4,
    partBytes: 219_902_324,
    concurrency: 1,
  });
});
