import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parseWalSegment, walSegmentStart } from "../../../src/postgres/wal-name.ts";
import { createWalFolder, segments, type WalFolder } from "../../support/wal-folder.ts";
import { makeSegment } from "../../support/wal-segment.ts";
import { storeFailure } from "../../support/watched-store.ts";

const mib = 1 << 20;
let folder: WalFolder;
let destination: string;
const [s1 = "", s2 = "", s3 = "", s4 = "", s5 = "", s6 = ""] = segments(1, 6);

beforeEach(async () => {
  folder = await createWalFolder();
  destination = folder.path("RECOVERYXLOG");
});
afterEach(() => folder.remove());

/** Puts objects below `wals/` as an archiver would. */
async function stock(objects: Readonly<Record<string, Uint8Array>>): Promise<void> {
  for (const [objectName, bytes] of Object.entries(objects)) {
    const inner = objectName.includes("history") ? "" : `${objectName.slice(0, 16)}/`;
    await folder.store.put(`p/srv/wals/${inner}${objectName}`, [bytes]);
  }
  folder.store.calls.length = 0;
}

const stockSegments = (names: readonly string[]) =>
  stock(Object.fromEntries(names.map((name) => [`${name}.zst`, zstdCompressSync(makeSegment(name))])));
const gets = () =>
  folder.store.calls.filter(({ call }) => call === "get").map(({ key }) => key.slice(key.lastIndexOf("/") + 1));
const spooled = () => readdir(join(folder.root, "spool"));
const until = async (what: () => Promise<boolean> | boolean) => {
  for (let tries = 0; !(await what()); tries++) {
    if (tries > 3000) throw new Error("it did not happen within 30 s");
    await sleep(10);
  }
};

/** Waits until the archive was asked for a segment ahead of its request, and nothing is asked any more. */
const askedFor = (name: string) =>
  until(
    () =>
      folder.store.pending === 0 && folder.store.calls.some(({ call, key }) => call === "list" && key.includes(name)),
  );

describe("delivery", () => {
  test.each([
    [`${s1}`, (bytes: Buffer) => bytes],
    [`${s1}.gz`, gzipSync],
    [`${s1}.zst`, zstdCompressSync],
    [`${s1}.partial.gz`, gzipSync],
  ])("of %s", async (objectName, compress) => {
    await stock({ [objectName]: compress(makeSegment(s1)) });
    await folder.restorer().restore({ name: s1, destination });
    expect((await readFile(destination)).equals(makeSegment(s1))).toBe(true);
    expect(folder.logs.messages("info")).toContain("Restored WAL file");
  });

  test.each(["", ".gz", ".zst"])("a complete file beside a partial one wins with suffix %j", async (suffix) => {
    const pack = (bytes: Buffer) =>
      suffix === ".gz" ? gzipSync(bytes) : suffix === ".zst" ? zstdCompressSync(bytes) : bytes;
    await stock({ [`${s1}${suffix}`]: pack(makeSegment(s1)), [`${s1}.partial`]: makeSegment(s1, { seed: "partial" }) });
    await folder.restorer().restore({ name: s1, destination });
    expect((await readFile(destination)).equals(makeSegment(s1))).toBe(true);
  });

  test("of a partial file for a segment that is missing only where nobody said no", async () => {
    await stock({ [`${s1}.partial`]: makeSegment(s1) });
    const strict = folder.restorer({ partials: false });
    await expect(strict.restore({ name: s1, destination })).rejects.toMatchObject({ kind: "notFound" });
    await strict.restore({ name: `${s1}.partial`, destination });
    expect((await readFile(destination)).equals(makeSegment(s1))).toBe(true);
  });

  test("of a history file", async () => {
    await stock({ "00000002.history.gz": gzipSync("1\t0/3000000\tfailover\n") });
    await folder.restorer().restore({ name: "00000002.history", destination });
    expect(await readFile(destination, "utf8")).toBe("1\t0/3000000\tfailover\n");
  });

  test("backup labels are never delivered, and names that are none are refused", async () => {
    await stock({ [`${s1}.00000028.backup`]: Buffer.from("START WAL LOCATION: 0/1000028\n") });
    const restorer = folder.restorer();
    await expect(restorer.restore({ name: `${s1}.00000028.backup`, destination })).rejects.toMatchObject({
      kind: "notFound",
    });
    await expect(restorer.restore({ name: s1, destination })).rejects.toMatchObject({ kind: "notFound" });
    await expect(restorer.restore({ name: "00000001X", destination })).rejects.toMatchObject({ kind: "badName" });
    expect(existsSync(destination)).toBe(false);
  });
});

describe("failures", () => {
  test.each([
    ["unavailable", 503, "unavailable"],
    ["denied", 403, "denied"],
    ["bucketMissing", 404, "unavailable"],
  ] as const)("%s never looks like an absent file", async (kind, status, expected) => {
    await stockSegments([s1]);
    folder.store.before = (call) => {
      if (call === "list" || call === "get") throw storeFailure(kind, "GET", status);
    };
    const failed = folder.restorer().restore({ name: s1, destination });
    await expect(failed).rejects.toMatchObject({ kind: expected, message: expect.stringContaining(`HTTP ${status}`) });
    expect(existsSync(destination)).toBe(false);
  });

  test("a passing fault is waited out", async () => {
    await stockSegments([s1]);
    let left = 2;
    folder.store.before = (call) => {
      if (call === "get" && left-- > 0) throw storeFailure("unavailable", "GET", 500);
    };
    await folder.restorer().restore({ name: s1, destination });
    expect((await readFile(destination)).equals(makeSegment(s1))).toBe(true);
  });

  test.each([
    ["cut off", `${s1}.zst`, zstdCompressSync(makeSegment(s1)).subarray(0, 5000)],
    ["empty", `${s1}`, Buffer.alloc(0)],
    ["empty inside", `${s1}.gz`, gzipSync(Buffer.alloc(0))],
    ["of another segment", `${s1}.gz`, gzipSync(makeSegment(s2))],
    ["of another size", `${s1}.gz`, gzipSync(makeSegment(s1).subarray(0, mib / 2))],
    ["not what the suffix says", `${s1}.gz`, makeSegment(s1)],
    ["not what the other suffix says", `${s1}.xz`, makeSegment(s1)],
  ])("bytes that are %s are not delivered", async (_what, objectName, bytes) => {
    await stock({ [objectName]: bytes });
    await writeFile(destination, "as it was");
    await expect(folder.restorer().restore({ name: s1, destination })).rejects.toMatchObject({ kind: "unavailable" });
    expect(await readFile(destination, "utf8")).toBe("as it was");
    expect((await readdir(folder.wal)).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });

  test("a destination that cannot be written is this side's failure", async () => {
    await stockSegments([s1]);
    const failed = folder.restorer().restore({ name: s1, destination: join(folder.root, "none/x") });
    await expect(failed).rejects.toMatchObject({ kind: "local" });
  });
});

describe("prefetch", () => {
  test("what follows is fetched in the background and served from the spool", async () => {
    await stockSegments([s1, s2, s3, s4, s5]);
    const restorer = folder.restorer({ prefetch: 2 });
    await restorer.restore({ name: s1, destination });
    await until(async () => (await spooled()).join() === [s2, s3].join());
    await restorer.restore({ name: s2, destination });
    expect((await readFile(destination)).equals(makeSegment(s2))).toBe(true);
    expect(gets().filter((name) => name === `${s2}.zst`)).toHaveLength(1);
    await until(async () => (await spooled()).join() === [s3, s4].join());
    await restorer.close();
    expect(await spooled()).toEqual([]);
  });

  test("a request joins the download that runs", async () => {
    await stockSegments([s1, s2]);
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    folder.store.before = async (call, key) => {
      if (call === "get" && key.includes(s2)) await held;
    };
    const restorer = folder.restorer({ prefetch: 1 });
    await restorer.restore({ name: s1, destination });
    await until(() => gets().some((name) => name.includes(s2)));
    const second = restorer.restore({ name: s2, destination });
    release();
    await second;
    expect(gets().filter((name) => name.includes(s2))).toHaveLength(1);
    await restorer.close();
  });

  test("what an earlier process or another direction left is not served", async () => {
    await stockSegments([s1, s2, s3]);
    await mkdir(join(folder.root, "spool"));
    await writeFile(join(folder.root, "spool", s1), "stale");
    const restorer = folder.restorer({ prefetch: 1 });
    await restorer.restore({ name: s1, destination });
    expect((await readFile(destination)).equals(makeSegment(s1))).toBe(true);
    await until(async () => (await spooled()).join() === s2);
    await restorer.restore({ name: s3, destination, mode: "rewind" });
    expect(await spooled()).toEqual([]);
    expect(gets().at(-1)).toBe(`${s3}.zst`);
    await restorer.close();
  });

  test("a spooled file that lost its bytes is fetched again", async () => {
    await stockSegments([s1, s2]);
    const restorer = folder.restorer({ prefetch: 1 });
    await restorer.restore({ name: s1, destination });
    await until(async () => (await spooled()).join() === s2);
    await writeFile(join(folder.root, "spool", s2), "");
    await restorer.restore({ name: s2, destination });
    expect((await readFile(destination)).equals(makeSegment(s2))).toBe(true);
    await restorer.close();
  });

  test("a spool that cannot be written costs nothing but speed", async () => {
    await stockSegments([s1, s2]);
    const restorer = folder.restorer({ prefetch: 1 });
    await restorer.restore({ name: s1, destination });
    await until(async () => (await spooled()).join() === s2);
    await rm(join(folder.root, "spool"), { recursive: true });
    await restorer.restore({ name: s2, destination });
    expect((await readFile(destination)).equals(makeSegment(s2))).toBe(true);
    await restorer.close();
  });

  test("partial files are not fetched ahead", async () => {
    await stockSegments([s1]);
    await stock({ [`${s2}.partial`]: makeSegment(s2) });
    const restorer = folder.restorer({ prefetch: 1 });
    await restorer.restore({ name: s1, destination });
    await until(() => gets().some((name) => name.includes(s2)));
    await sleep(30);
    expect(await spooled()).toEqual([]);
    await restorer.close();
  });

  test("segments of 64 MiB go over to the next log number at their own place", async () => {
    const last = "00000001000000000000003F";
    const next = "000000010000000100000000";
    const segmentBytes = 64 * mib;
    // Zeros after the header: noise of this size takes long to make.
    const segment = (name: string) => {
      const parsed = parseWalSegment(name);
      if (!parsed) throw new Error(`${name} is not the name of a segment`);
      const bytes = Buffer.alloc(segmentBytes);
      makeSegment(name, { segmentBytes: mib }).copy(bytes, 0, 0, 8192);
      bytes.writeBigUInt64LE(walSegmentStart(parsed, segmentBytes), 8);
      bytes.writeUInt32LE(segmentBytes, 32);
      return zstdCompressSync(bytes);
    };
    await stock({ [`${last}.zst`]: segment(last), [`${next}.zst`]: segment(next) });
    const restorer = folder.restorer({ prefetch: 1 });
    await restorer.restore({ name: last, destination });
    await until(async () => (await spooled()).join() === next);
    await restorer.close();
  });
});

describe("end of WAL", () => {
  const kindOf = (name: string, restorer = folder.restorer(), streamingAvailable = true) =>
    restorer.restore({ name, destination, streamingAvailable }).then(
      () => "restored",
      (error: { kind: string }) => error.kind,
    );

  test("a miss of a prefetch answers the next request once, then the archive is asked again", async () => {
    await stockSegments([s1, s2]);
    const restorer = folder.restorer({ prefetch: 4 });
    expect(await kindOf(s1, restorer)).toBe("restored");
    await askedFor(s5);
    expect(await kindOf(s2, restorer)).toBe("restored");
    await askedFor(s6);
    folder.store.calls.length = 0;
    expect(await kindOf(s3, restorer)).toBe("endOfWal");
    expect(folder.store.calls).toEqual([]);
    await stockSegments([s3]);
    expect(await kindOf(s3, restorer)).toBe("restored");
    await restorer.close();
  });

  test("a miss on one timeline does not end another", async () => {
    const old = segments(0x0a, 0x0c);
    const [a, b, c] = old;
    const young = segments(0x0c, 0x0f, 2);
    await stockSegments([...old, ...young]);
    const restorer = folder.restorer({ prefetch: 4, segmentBytes: mib });
    for (const name of [a, b, c]) expect(await kindOf(name ?? "", restorer)).toBe("restored");
    await askedFor("000000010000000000000010");
    const forked = young[0] ?? "";
    expect(await kindOf(forked, restorer)).toBe("restored");
    expect((await readFile(destination)).equals(makeSegment(forked))).toBe(true);
    await restorer.close();
  });

  test("without streaming, in a rewind, and for files that are no segments there is no marker", async () => {
    await stockSegments([s1]);
    const restorer = folder.restorer({ prefetch: 2 });
    expect(await kindOf(s1, restorer)).toBe("restored");
    await askedFor(s3);
    expect(await kindOf("00000002.history", restorer)).toBe("notFound");
    expect(await kindOf(s2, restorer, false)).toBe("notFound");
    await restorer.restore({ name: s1, destination, mode: "rewind" });
    expect(await kindOf(s2, restorer)).toBe("notFound");
    await restorer.close();
  });

  test("a fault of a prefetch sets no marker", async () => {
    await stockSegments([s1]);
    folder.store.before = (call, key) => {
      if (call !== "put" && !key.includes(s1)) throw storeFailure("unavailable", "GET", 503);
    };
    const restorer = folder.restorer({ prefetch: 1 });
    expect(await kindOf(s1, restorer)).toBe("restored");
    await sleep(50);
    folder.store.before = () => undefined;
    expect(await kindOf(s2, restorer)).toBe("notFound");
    await restorer.close();
  });
});
