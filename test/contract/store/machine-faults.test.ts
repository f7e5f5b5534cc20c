// What the machine itself does to archiving and restoring: disks that are full, a clock that is wrong.
import { execFileSync } from "node:child_process";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createS3Store } from "../../../src/store/s3-store.ts";
import { startS3Server } from "../../support/s3-server.ts";
import { createWalFolder, segments, type WalFolder } from "../../support/wal-folder.ts";
import { makeSegment } from "../../support/wal-segment.ts";

const [s1 = "", s2 = "", s3 = ""] = segments(1, 3);
const mounts: string[] = [];
let folder: WalFolder;

beforeEach(async () => {
  folder = await createWalFolder();
});
afterEach(async () => {
  for (const path of mounts.splice(0)) execFileSync("umount", [path]);
  await folder.remove();
});

/** A file system of its own with a few pages, all of which a file takes; gives the path of that file. */
async function fullDisk(path: string): Promise<string> {
  await mkdir(path, { recursive: true });
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", path]);
  mounts.push(path);
  const ballast = join(path, "ballast");
  await writeFile(ballast, Buffer.alloc(1 << 20)).catch(() => undefined);
  await expect(writeFile(join(path, "probe"), "x")).rejects.toMatchObject({ code: "ENOSPC" });
  await rm(join(path, "probe"), { force: true });
  return ballast;
}

async function stock(...names: string[]): Promise<void> {
  await folder.ready(...names);
  const archiver = folder.archiver({ recordFolder: join(folder.root, "stock") });
  for (const name of names) await archiver.archive({ path: folder.path(name) });
  await archiver.close();
}

const objects = (...names: string[]) => names.map((name) => `${name}.zst`);

describe("a full disk", () => {
  test("under the records: what the store has confirmed is archived, and what was sent ahead is not believed", async () => {
    const disk = join(folder.root, "disk");
    const ballast = await fullDisk(disk);
    const recordFolder = join(disk, "records");
    await folder.ready(s1, s2);
    const archiver = folder.archiver({ recordFolder });
    await archiver.archive({ path: folder.path(s1), lookAhead: true });
    await vi.waitFor(async () => expect(await folder.archived()).toEqual(objects(s1, s2)), { timeout: 30_000 });
    await folder.done(s1);
    expect((await readdir(recordFolder)).filter((name) => name.endsWith(".archived"))).toEqual([]);
    // Asked for, it is compared with what is there, and true without a record.
    await archiver.archive({ path: folder.path(s2) });
    await rm(ballast);
    await folder.ready(s3);
    await archiver.archive({ path: folder.path(s3) });
    await archiver.close();
    expect(await folder.archived()).toEqual(objects(s1, s2, s3));
    expect(await readdir(recordFolder)).toContain(`${s3}.archived`);
  });

  test("under the spool: nothing is fetched ahead, every request is served", async () => {
    await stock(s1, s2, s3);
    await fullDisk(join(folder.root, "spool"));
    const restorer = folder.restorer();
    for (const name of [s1, s2, s3]) {
      const destination = folder.path(`restored-${name}`);
      await restorer.restore({ name, destination });
      expect((await readFile(destination)).equals(makeSegment(name, { segmentBytes: 1 << 20 }))).toBe(true);
    }
    await restorer.close();
  });

  test("under PostgreSQL's folder: this side's failure, no half file, never an absence", async () => {
    await stock(s1);
    const target = join(folder.root, "target");
    const ballast = await fullDisk(target);
    const restorer = folder.restorer();
    const request = { name: s1, destination: join(target, "RECOVERYXLOG") };
    await expect(restorer.restore(request)).rejects.toMatchObject({
      kind: "local",
      message: expect.stringContaining("ENOSPC"),
    });
    expect(await readdir(target)).toEqual(["ballast"]);
    await rm(ballast);
    execFileSync("mount", ["-o", "remount,size=4m", target]);
    await restorer.restore(request);
    await restorer.close();
  });
});

test.each([-3_600_000, 3_600_000])("with a clock that is %i ms off the store is used all the same", async (offMs) => {
  const s3 = await startS3Server();
  const store = await createS3Store({ ...s3.options("skewed-clock"), readTimeoutMs: 20_000 });
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + offMs });
  try {
    await store.checkBucket({ create: true });
    await store.put("a/b", [Buffer.from("bytes")]);
    expect((await store.head("a/b"))?.size).toBe(5);
  } finally {
    vi.useRealTimers();
    store.close();
    await s3.stop();
  }
});
