// How Barman's tools end, and what ours say of the same things: who acts on a code of theirs must be able to act on a kind of ours.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { choosePort } from "../../../local/process/free-port.ts";
import { readCatalog } from "../../../src/archive/archive-reader.ts";
import { BaseError } from "../../../src/archive/base/base-error.ts";
import { findBaseBackup } from "../../../src/archive/base/find-base-backup.ts";
import { restoreBaseBackup } from "../../../src/archive/base/restore-base-backup.ts";
import { checkEmptyArchive } from "../../../src/archive/empty-archive.ts";
import { WalArchiver } from "../../../src/archive/wal-archiver.ts";
import { WalError } from "../../../src/archive/wal-error.ts";
import { WalRestorer } from "../../../src/archive/wal-restorer.ts";
import { formatBackupInfo } from "../../../src/barman/backup-info.ts";
import { classifyWalFailure } from "../../../src/barman/failure-class.ts";
import { serverKeys } from "../../../src/barman/object-keys.ts";
import { parseRetentionPolicy } from "../../../src/barman/retention.ts";
import type { ObjectStore } from "../../../src/ports/object-store.ts";
import { createFiles } from "../../../src/process/files.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { createBulkFiles } from "../../../src/store/bulk-files.ts";
import { createS3Store } from "../../../src/store/s3-store.ts";
import { createTreeFiles } from "../../../src/store/tree-files.ts";
import { aBackup } from "../../support/backup-catalog.ts";
import { type BarmanTools, barmanTools } from "../../support/barman.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { type S3Server, startS3Server } from "../../support/s3-server.ts";
import { makeSegment } from "../../support/wal-segment.ts";

// Each run of Barman's tools takes seconds to start on a busy machine.
vi.setConfig({ testTimeout: 240_000 });

const bucket = "barman-exits";
const place = { path: "deep", serverName: "cluster" };
const destination = [`s3://${bucket}/deep`, "cluster"];
const keys = serverKeys(place.path, place.serverName);
const segment = "000000010000000000000005";
const [done, failed] = ["20260101T000000", "20260102T000000"];

let server: S3Server;
let barman: BarmanTools;
/** The same tools and a store of ours where nobody listens. */
let lonelyBarman: BarmanTools;
let lonelyStore: ObjectStore;
let store: ObjectStore;
let folder: string;

beforeAll(async () => {
  server = await startS3Server();
  const endpoint = `http://127.0.0.1:${await choosePort()}`;
  [barman, lonelyBarman] = await Promise.all([barmanTools(server), barmanTools({ ...server, endpoint })]);
  store = await createS3Store(server.options(bucket));
  lonelyStore = await createS3Store({ ...server.options(bucket), endpoint });
  await store.checkBucket({ create: true });
  await store.put(keys.wal(segment), [makeSegment(segment)]);
  for (const [id, status] of [
    [done, "DONE"],
    [failed, "FAILED"],
  ] as const) {
    const { info } = aBackup(id, { status, beginWal: segment, endWal: segment });
    await store.put(keys.backupInfo(id), [Buffer.from(formatBackupInfo(info))]);
  }
  folder = await mkdtemp(join(tmpdir(), "barman-exits-"));
});

afterAll(async () => {
  store?.close();
  lonelyStore?.close();
  await server?.stop();
  if (folder) await rm(folder, { recursive: true, force: true });
});

const ports = (of: ObjectStore) => ({
  store: of,
  files: createFiles(),
  bulk: createBulkFiles(),
  clock: systemClock,
  random: systemRandom,
  logger: captureLogs().logger,
});
const base = (of: ObjectStore) => ({ ...ports(of), tree: createTreeFiles() });

/** The kind of what ours fails with. */
async function kindOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (failure: unknown) => failure,
  );
  if (error instanceof WalError || error instanceof BaseError) return error.kind;
  throw new Error("it did not fail in one of the known ways", { cause: error });
}

async function restoreWal(of: ObjectStore, name: string): Promise<unknown> {
  const restorer = new WalRestorer({ ...place, spoolFolder: join(folder, "spool"), prefetch: 0 }, ports(of));
  try {
    return await restorer.restore({ name, destination: join(folder, "RECOVERYXLOG") });
  } finally {
    await restorer.close();
  }
}

async function archiveWal(name: string): Promise<unknown> {
  const walFolder = join(folder, "pg_wal");
  await mkdir(join(walFolder, "archive_status"), { recursive: true });
  await writeFile(join(walFolder, name), "x");
  const options = {
    ...place,
    destination: "exits",
    walFolder,
    recordFolder: join(folder, "records"),
    compression: undefined,
  };
  const archiver = new WalArchiver(options, ports(store));
  try {
    return await archiver.archive({ path: join(walFolder, name), checkEmpty: false });
  } finally {
    await archiver.close();
  }
}

const target = () => join(folder, "RECOVERYXLOG");
const code = async (name: string, args: readonly string[], tools = barman) => (await tools.run(name, args)).code;

/** What the instance side makes of the exit codes of `barman-cloud-wal-restore`. */
const meanings: Readonly<Record<number, string>> = {
  1: "NOT_FOUND",
  2: "UNAVAILABLE",
  3: "INVALID_ARGUMENT",
  4: "UNAVAILABLE",
};

describe("of a WAL file that is asked for", () => {
  test.each<[string, string, () => BarmanTools, () => ObjectStore]>([
    ["that is not there", "000000010000000000000009", () => barman, () => store],
    ["by a name that is none", "nonsense", () => barman, () => store],
    ["from a store that cannot be reached", segment, () => lonelyBarman, () => lonelyStore],
  ])("%s, both say the same", async (_case, name, tools, of) => {
    const exit = await code("wal-restore", [...destination, name, target()], tools());
    const kind = await kindOf(restoreWal(of(), name));
    expect(classifyWalFailure(kind as Parameters<typeof classifyWalFailure>[0]).grpc).toBe(meanings[exit]);
  });

  test("from a bucket that does not exist: no end of WAL to either", async () => {
    const missing = ["s3://nobody-made-this/deep", "cluster"];
    expect(meanings[await code("wal-restore", [...missing, segment, target()])]).toBe("UNAVAILABLE");
    const elsewhere = await createS3Store(server.options("nobody-made-this"));
    expect(await kindOf(restoreWal(elsewhere, segment))).toBe("unavailable");
    elsewhere.close();
  });
});

test("a WAL name that is none is refused by both before anything is sent", async () => {
  await writeFile(join(folder, "nonsense"), "x");
  expect(await code("wal-archive", [...destination, join(folder, "nonsense")])).toBe(3);
  expect(await kindOf(archiveWal("nonsense"))).toBe("badName");
});

test("an archive that is not empty is none for a new cluster, and an unreachable one is no empty one", async () => {
  expect(await code("check-wal-archive", destination)).toBe(1);
  expect(await kindOf(checkEmptyArchive(keys, "cluster", undefined, ports(store)))).toBe("conflict");
  expect(await code("check-wal-archive", destination, lonelyBarman)).toBe(2);
  expect(await kindOf(checkEmptyArchive(keys, "cluster", undefined, ports(lonelyStore)))).toBe("unavailable");
});

test("a backup that is unknown, or failed, is restored by neither", async () => {
  const into = (name: string) => join(folder, name);
  const restore = (id: string, name: string) =>
    restoreBaseBackup(base(store), { ...place, backupId: id, dataFolder: into(name) });
  expect(await code("backup-show", [...destination, "20200101T000000"])).toBe(1);
  expect(await kindOf(findBaseBackup(store, place, "20200101T000000"))).toBe("notFound");
  expect(await code("restore", [...destination, "20200101T000000", into("a")])).toBe(1);
  expect(await kindOf(restore("20200101T000000", "b"))).toBe("notFound");
  expect(await code("backup-keep", ["--target", "full", ...destination, failed])).toBe(1);
  expect(await kindOf(restore(failed, "c"))).toBe("notFound");
});

test("a folder that is not empty is restored into by neither", async () => {
  const full = join(folder, "full");
  await mkdir(full);
  await writeFile(join(full, "mine"), "mine");
  await store.put(keys.tar(done, "data", 0), [Buffer.alloc(1024)]);
  expect(await code("restore", [...destination, done, full])).toBe(1);
  expect(await kindOf(restoreBaseBackup(base(store), { ...place, backupId: done, dataFolder: full }))).toBe("notEmpty");
});

test("a retention policy that is none is one to neither", async () => {
  expect(await code("backup-delete", ["--retention-policy", "FOR EVER", ...destination])).toBe(3);
  expect(parseRetentionPolicy("for ever")).toBeUndefined();
  expect((await readCatalog(store, keys)).backups.map(({ id }) => id)).toEqual([done, failed]);
});
