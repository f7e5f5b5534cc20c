import { existsSync } from "node:fs";
import { chmod, copyFile, readFile, rename, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { zstdCompressSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createWalFolder, segments, type WalFolder } from "../../support/wal-folder.ts";
import { makeSegment } from "../../support/wal-segment.ts";
import { storeFailure } from "../../support/watched-store.ts";

let folder: WalFolder;
const [s1 = "", s2 = "", s3 = "", s4 = "", s5 = "", s6 = ""] = segments(1, 6);

beforeEach(async () => {
  folder = await createWalFolder();
});
afterEach(() => folder.remove());

const puts = () => folder.store.calls.filter(({ call }) => call === "put").map(({ key }) => key.slice(-12, -4));
const until = async (what: () => Promise<boolean> | boolean) => {
  for (let tries = 0; !(await what()); tries++) {
    if (tries > 500) throw new Error("it did not happen within 5 s");
    await sleep(10);
  }
};

describe("acknowledgement", () => {
  test("a file is recorded, and asked again it is answered from the record", async () => {
    await folder.ready(s1);
    const archiver = folder.archiver();
    await archiver.archive({ path: folder.path(s1) });
    expect(await folder.archived()).toEqual([`${s1}.zst`]);
    expect(await folder.records()).toEqual([s1]);
    await archiver.archive({ path: folder.path(s1) });
    expect(puts()).toHaveLength(1);
    expect(folder.logs.messages("info")).toContain("WAL file already archived, skipping");
    await archiver.close();
  });

  test("a record outlives the process, and goes when PostgreSQL is done with the file", async () => {
    await folder.ready(s1, s2);
    await folder.archiver().archive({ path: folder.path(s1) });
    const next = folder.archiver();
    await next.archive({ path: folder.path(s1) });
    expect(puts()).toHaveLength(1);
    await folder.done(s1);
    await next.archive({ path: folder.path(s2) });
    await until(async () => (await folder.records()).join() === s2);
  });

  test("a touched file with the same bytes is answered after hashing, one with other bytes refused", async () => {
    await folder.ready(s1);
    const archiver = folder.archiver();
    await archiver.archive({ path: folder.path(s1) });
    await utimes(folder.path(s1), new Date(1000), new Date(1000));
    await archiver.archive({ path: folder.path(s1) });
    await copyFile(folder.path(s1), folder.path("copy"));
    await rename(folder.path("copy"), folder.path(s1));
    await archiver.archive({ path: folder.path(s1) });
    expect(puts()).toHaveLength(1);

    const before = await readFile(join(folder.archive, "p/srv/wals", s1.slice(0, 16), `${s1}.zst`));
    await writeFile(folder.path(s1), makeSegment(s1, { seed: "other" }));
    await expect(archiver.archive({ path: folder.path(s1) })).rejects.toMatchObject({
      kind: "conflict",
      message: expect.stringMatching(/holds other bytes than .*never overwritten/),
    });
    const after = await readFile(join(folder.archive, "p/srv/wals", s1.slice(0, 16), `${s1}.zst`));
    expect(after.equals(before)).toBe(true);
  });

  test("another archive invalidates the record", async () => {
    await folder.ready(s1);
    await folder.archiver().archive({ path: folder.path(s1) });
    await folder.archiver({ serverName: "other" }).archive({ path: folder.path(s1) });
    expect(await folder.archived()).toEqual([`${s1}.zst`, `${s1}.zst`]);
  });

  test("bytes without a record are found equal, under any suffix, and not sent again", async () => {
    await folder.ready(s1);
    await folder.archiver({ compression: "gzip" }).archive({ path: folder.path(s1) });
    const archiver = folder.archiver({ recordFolder: join(folder.root, "fresh") });
    await archiver.archive({ path: folder.path(s1) });
    expect(await folder.archived()).toEqual([`${s1}.gz`]);
  });

  test("a half-written record is none", async () => {
    await folder.ready(s1);
    await folder.archiver().archive({ path: folder.path(s1) });
    const record = join(folder.root, "records", `${s1}.archived`);
    const text = await readFile(record, "utf8");
    await writeFile(record, text.slice(0, 40));
    await folder.archiver().archive({ path: folder.path(s1) });
    expect(await readFile(record, "utf8")).toContain(s1);
    expect(puts()).toHaveLength(1);
  });

  test("a full spool does not hold up archiving", async () => {
    await folder.ready(s1);
    const archiver = folder.archiver({ recordFolder: "/dev/full/records" });
    await expect(archiver.archive({ path: folder.path(s1) })).rejects.toMatchObject({ kind: "local" });

    const writable = folder.archiver();
    await writable.archive({ path: folder.path(s1) });
    await folder.ready(s2);
    await chmod(join(folder.root, "records"), 0o700);
    const full = folder.archiver({}, (step) => {
      if (step === "uploaded") throw Object.assign(new Error("ENOSPC"), { code: "ENOSPC" });
    });
    await expect(full.archive({ path: folder.path(s2) })).rejects.toMatchObject({ kind: "local" });
    await folder.archiver().archive({ path: folder.path(s2) });
    expect(await folder.archived()).toEqual([`${s1}.zst`, `${s2}.zst`]);
  });
});

describe("failures", () => {
  test.each([
    ["unavailable", 503, "unavailable"],
    ["denied", 403, "denied"],
    ["bucketMissing", 404, "unavailable"],
    ["invalid", 400, "local"],
  ] as const)("a store that answers %s leaves the file to PostgreSQL, and says why", async (kind, status, expected) => {
    await folder.ready(s1);
    folder.store.before = (call) => {
      if (call === "put") throw storeFailure(kind, "PUT", status);
    };
    const archiver = folder.archiver();
    await expect(archiver.archive({ path: folder.path(s1) })).rejects.toMatchObject({
      kind: expected,
      message: expect.stringMatching(new RegExp(`cannot archive ${s1}: PUT .*HTTP ${status}`)),
    });
    expect(await folder.records()).toEqual([]);
    folder.store.before = () => undefined;
    await archiver.archive({ path: folder.path(s1) });
    expect(await folder.records()).toEqual([s1]);
  });

  test("a listing that fails does not pass for an absent name", async () => {
    await folder.ready(s1);
    folder.store.before = (call) => {
      if (call === "list") throw storeFailure("unavailable", "LIST", 500);
    };
    await expect(folder.archiver().archive({ path: folder.path(s1) })).rejects.toMatchObject({ kind: "unavailable" });
    expect(puts()).toEqual([]);
  });

  test("an answer lost on its way is settled by the next try", async () => {
    await folder.ready(s1);
    folder.store.after = (call) => {
      if (call === "put") throw storeFailure("unavailable");
    };
    const archiver = folder.archiver();
    await expect(archiver.archive({ path: folder.path(s1) })).rejects.toMatchObject({ kind: "unavailable" });
    folder.store.after = () => undefined;
    await archiver.archive({ path: folder.path(s1) });
    expect(puts()).toHaveLength(1);
  });

  test.each([
    ["other bytes", makeSegment(s1, { seed: "theirs" }), "conflict"],
    ["the same bytes", makeSegment(s1), undefined],
  ])("somebody who is faster with %s", async (_what, theirs, kind) => {
    await folder.ready(s1);
    folder.store.before = async (call, key) => {
      if (call !== "put") return;
      folder.store.before = () => undefined;
      await folder.store.put(key, [zstdCompressSync(theirs)]);
    };
    const archived = folder.archiver().archive({ path: folder.path(s1) });
    if (kind === undefined) await archived;
    else await expect(archived).rejects.toMatchObject({ kind });
    expect(await folder.records()).toEqual(kind === undefined ? [s1] : []);
  });

  test.each(["nonsense", "00000001X", "archive_status"])("%s is no WAL file", async (name) => {
    await expect(folder.archiver().archive({ path: folder.path(name) })).rejects.toMatchObject({ kind: "badName" });
  });

  test("a missing or empty file is this side's failure", async () => {
    const archiver = folder.archiver();
    await expect(archiver.archive({ path: folder.path(s1) })).rejects.toMatchObject({ kind: "local" });
    await writeFile(folder.path(s1), "");
    await expect(archiver.archive({ path: folder.path(s1) })).rejects.toMatchObject({ kind: "local" });
  });

  test("a file that changes while it is read is not archived", async () => {
    await folder.ready(s1);
    const archiver = folder.archiver({}, async (step) => {
      if (step === "compressed") await writeFile(folder.path(s1), makeSegment(s1, { seed: "late" }));
    });
    await expect(archiver.archive({ path: folder.path(s1) })).rejects.toMatchObject({
      message: expect.stringContaining("changed while it was read"),
    });
    expect(await folder.archived()).toEqual([]);
  });
});

describe("looking ahead", () => {
  test("segments that wait are sent before they are asked for, and answered from their records", async () => {
    await folder.ready(s1, s2, s3, s4);
    const archiver = folder.archiver({ maxParallel: 2 });
    await archiver.archive({ path: folder.path(s1), lookAhead: true });
    await until(async () => (await folder.records()).length === 4);
    await archiver.archive({ path: folder.path(s2), lookAhead: true });
    expect(puts()).toHaveLength(4);
    expect(folder.logs.messages("info")).toContain("Pre-archived WAL file (parallel)");
    await archiver.close();
  });

  test("not without being told that this pod is the primary", async () => {
    await folder.ready(s1, s2);
    const archiver = folder.archiver();
    await archiver.archive({ path: folder.path(s1) });
    await sleep(50);
    expect(await folder.archived()).toEqual([`${s1}.zst`]);
    await archiver.close();
  });

  test("no further than allowed", async () => {
    await folder.ready(s1, s2, s3, s4, s5, s6);
    const archiver = folder.archiver({ lookAhead: 2 });
    await archiver.archive({ path: folder.path(s1), lookAhead: true });
    await until(async () => (await folder.records()).length === 3);
    await sleep(50);
    expect(await folder.archived()).toEqual([s1, s2, s3].map((name) => `${name}.zst`));
    await archiver.close();
  });

  test("a neighbour that fails does not fail the request, and is tried again when it is asked for", async () => {
    await folder.ready(s1, s2, s3);
    folder.store.before = (call, key) => {
      if (call === "put" && key.includes(s2)) throw storeFailure("unavailable");
    };
    const archiver = folder.archiver();
    await archiver.archive({ path: folder.path(s1), lookAhead: true });
    await until(async () => (await folder.records()).join() === [s1, s3].join());
    folder.store.before = () => undefined;
    await archiver.archive({ path: folder.path(s2), lookAhead: true });
    expect(await folder.archived()).toEqual([s1, s2, s3].map((name) => `${name}.zst`));
    await archiver.close();
  });

  test("a request joins the upload that runs already", async () => {
    await folder.ready(s1, s2);
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    folder.store.before = async (call, key) => {
      if (call === "put" && key.includes(s2)) await held;
    };
    const archiver = folder.archiver();
    await archiver.archive({ path: folder.path(s1), lookAhead: true });
    await until(() => puts().length === 2);
    const second = archiver.archive({ path: folder.path(s2), lookAhead: true });
    release();
    await second;
    expect(puts()).toHaveLength(2);
    await archiver.close();
  });

  test("never more uploads at once than asked for", async () => {
    await folder.ready(...segments(1, 12));
    let running = 0;
    let most = 0;
    folder.store.before = async (call) => {
      if (call !== "put") return;
      running += 1;
      most = Math.max(most, running);
      await sleep(30);
      running -= 1;
    };
    const archiver = folder.archiver({ maxParallel: 3, lookAhead: 8 });
    for (const name of segments(1, 12)) {
      await archiver.archive({ path: folder.path(name), lookAhead: true });
      await folder.done(name);
    }
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(3);
    expect(await folder.archived()).toHaveLength(12);
    await archiver.close();
  });
});

describe("empty archive", () => {
  const marker = () => join(folder.root, ".check-empty-wal-archive");
  const request = (name: string) => ({
    path: folder.path(name),
    checkEmpty: existsSync(marker()),
    markerPath: marker(),
    lookAhead: true,
  });

  test("the marker goes with the first success", async () => {
    await writeFile(marker(), "");
    await folder.ready(s1);
    await folder.archiver().archive(request(s1));
    expect(existsSync(marker())).toBe(false);
  });

  test("nothing is sent ahead before the first success", async () => {
    await writeFile(marker(), "");
    await folder.ready(s1, s2, s3);
    const archiver = folder.archiver({ maxParallel: 3 });
    await archiver.archive(request(s1));
    await sleep(50);
    expect(await folder.archived()).toEqual([`${s1}.zst`]);
    await archiver.archive(request(s2));
    await until(async () => (await folder.archived()).length === 3);
    await archiver.close();
  });

  test("somebody else's WAL stops the first archive, and nothing is sent", async () => {
    await folder.ready(s1, s2);
    await folder.archiver().archive({ path: folder.path(s2) });
    await writeFile(folder.path(s2), makeSegment(s2, { seed: "new cluster" }));
    await writeFile(marker(), "");
    const archiver = folder.archiver({ recordFolder: join(folder.root, "new-records") });
    await expect(archiver.archive(request(s1))).rejects.toMatchObject({
      kind: "conflict",
      message: expect.stringContaining("Expected empty archive"),
    });
    expect(existsSync(marker())).toBe(true);
    expect(await folder.archived()).toEqual([`${s2}.zst`]);
    await archiver.close();
  });

  test.each(["emptyChecked", "compressed", "uploaded", "recorded"] as const)(
    "a failure after step %s does not lock the archive, with or without the records",
    async (at) => {
      await folder.ready(s1);
      await writeFile(marker(), "");
      const failing = folder.archiver({}, (step) => {
        if (step === at) throw new Error("stopped here");
      });
      await expect(failing.archive(request(s1))).rejects.toThrow("stopped here");
      await folder.archiver({ recordFolder: join(folder.root, "lost") }).archive(request(s1));
      expect(existsSync(marker())).toBe(false);
      await writeFile(marker(), "");
      await folder.archiver().archive(request(s1));
      expect(await folder.archived()).toEqual([`${s1}.zst`]);
    },
  );

  test("a store that cannot be asked is not empty", async () => {
    await folder.ready(s1);
    await writeFile(marker(), "");
    folder.store.before = (call) => {
      if (call === "list") throw storeFailure("unavailable", "LIST", 503);
    };
    await expect(folder.archiver().archive(request(s1))).rejects.toMatchObject({ kind: "unavailable" });
    expect(puts()).toEqual([]);
  });

  test("a later marker asks for a check of its own", async () => {
    await folder.ready(s1, s2);
    await writeFile(marker(), "");
    const archiver = folder.archiver();
    await archiver.archive(request(s1));
    await archiver.archive(request(s2));
    await writeFile(marker(), "");
    await writeFile(folder.path(s1), makeSegment(s1, { seed: "restored elsewhere" }));
    await expect(archiver.archive(request(s1))).rejects.toMatchObject({ kind: "conflict" });
    await archiver.close();
  });
});

describe("former primary", () => {
  test("sends what both timelines share and refuses the rest", async () => {
    await folder.ready(s1, s2, s3);
    const drain = { history: [{ timeline: 1, switchPoint: 0x300100n, reason: "" }], segmentBytes: 1 << 20 };
    const archiver = folder.archiver();
    await archiver.archive({ path: folder.path(s1), drain });
    await archiver.archive({ path: folder.path(s2), drain });
    await expect(archiver.archive({ path: folder.path(s3), drain })).rejects.toMatchObject({ kind: "conflict" });
    expect(await folder.archived()).toEqual([`${s1}.zst`, `${s2}.zst`]);
  });
});
