import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { readWalRange } from "../../src/archive/archive-reader.ts";
import { restoreBaseBackup } from "../../src/archive/base/restore-base-backup.ts";
import { takeBaseBackup } from "../../src/archive/base/take-base-backup.ts";
import { WalError } from "../../src/archive/wal-error.ts";
import { WalRestorer } from "../../src/archive/wal-restorer.ts";
import { serverKeys } from "../../src/barman/object-keys.ts";
import { listAll, type ObjectStore } from "../../src/ports/object-store.ts";
import { createFiles } from "../../src/process/files.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { createSqlConnector } from "../../src/sql/pg-connector.ts";
import { createBulkFiles } from "../../src/store/bulk-files.ts";
import { createS3Store } from "../../src/store/s3-store.ts";
import { createTreeFiles } from "../../src/store/tree-files.ts";
import { barmanTools } from "../../test/support/barman.ts";
import { captureLogs } from "../../test/support/log-capture.ts";
import { startS3Server } from "../../test/support/s3-server.ts";
import { type Bench, median, report } from "../report.ts";
import { inFolder } from "./passes.ts";
import { type FetchWal, type Replay, replay } from "./replay.ts";
import { type BaseSource, startBaseSource } from "./source.ts";

const run = promisify(execFile);
const bucket = "bench-replay";
/** Segments to replay. */
const wanted = Number(process.env["BENCH_REPLAY_SEGMENTS"] ?? 200);
const { logger } = captureLogs();

/** Recovery from the archive: how long PostgreSQL waits for WAL, beside one process of Barman's tool for each file. */
export const replayBench: Bench = {
  about: "replay of 200 segments (BENCH_REPLAY_SEGMENTS): share of time that PostgreSQL waits for WAL",
  async run(runs) {
    const s3 = await startS3Server();
    const store = await createS3Store(s3.options(bucket));
    try {
      await store.checkBucket({ create: true });
      const barman = await barmanTools(s3);
      const source = await startBaseSource(store, 300);
      try {
        const backupId = await backup(store, source);
        await writeWal(store, source);
        const { place } = source;
        const destination = [`s3://${bucket}/${place.path}`, place.serverName];
        const restore = (dataFolder: string) => restoreCopy(store, place, backupId, dataFolder);
        const ours: Replay[] = [];
        const peer: Replay[] = [];
        for (let at = 0; at < runs; at++) {
          ours.push(await byUs(store, place, restore));
          peer.push(
            await replay(restore, async (name, path) => {
              const { code, stderr } = await barman.run("wal-restore", [...destination, name, path]);
              const there = code === 0 || (await isArchived(store, place, name));
              if (code !== 0 && there) throw new Error(`barman-cloud-wal-restore ended with ${code}: ${stderr}`);
              return there;
            }),
          );
        }
        tell(ours, peer, runs);
      } finally {
        await source.stop();
      }
    } finally {
      store.close();
      await s3.stop();
    }
  },
};

type Place = BaseSource["place"];

async function backup(store: ObjectStore, { server, place }: BaseSource): Promise<string> {
  const target = { host: server.socketDir, port: server.port, user: "postgres", database: "postgres" };
  const connect = (signal?: AbortSignal) =>
    createSqlConnector().connect({ ...target, applicationName: "bench" }, signal);
  const deps = { store, tree: createTreeFiles(), clock: systemClock, logger, connect };
  const request = { ...place, backupName: `backup-${randomUUID()}`, immediateCheckpoint: true };
  return (await takeBaseBackup(deps, request)).backupId;
}

/** TPC-B until there are enough segments and all of them are archived. Nobody waits for the disk, as only the WAL counts. */
async function writeWal(store: ObjectStore, { server, place }: BaseSource): Promise<void> {
  const where = ["-h", server.socketDir, "-p", String(server.port), "-U", "postgres"];
  const sql = async (text: string) =>
    (await run(join(server.binDir, "psql"), [...where, "-Atqc", text, "postgres"])).stdout.trim();
  const written = async () =>
    Number(await sql("select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint / 16777216"));
  const first = await written();
  while ((await written()) < first + wanted) {
    const env = { ...process.env, PGOPTIONS: "-c synchronous_commit=off" };
    await run(join(server.binDir, "pgbench"), ["-n", "-T", "10", "-c", "4", "-j", "2", ...where, "postgres"], { env });
  }
  const last = await sql("select pg_walfile_name(pg_switch_wal())");
  while (((await readWalRange(store, serverKeys(place.path, place.serverName)))?.last ?? "") < last) await sleep(500);
}

/** Ends the bench where the tool calls a file absent that is there: PostgreSQL would take it for the end. */
async function isArchived(store: ObjectStore, place: Place, name: string): Promise<boolean> {
  const prefix = serverKeys(place.path, place.serverName).wal(name);
  return (await listAll(store, prefix)).objects.length > 0;
}

async function restoreCopy(store: ObjectStore, place: Place, backupId: string, dataFolder: string): Promise<void> {
  const deps = { store, tree: createTreeFiles(), clock: systemClock, logger };
  await restoreBaseBackup(deps, { ...place, backupId, dataFolder, sync: false });
}

function byUs(store: ObjectStore, place: Place, restore: (dataFolder: string) => Promise<void>): Promise<Replay> {
  return inFolder(async (folder) => {
    const restorer = new WalRestorer(
      { ...place, spoolFolder: `${folder}/spool` },
      { store, files: createFiles(), bulk: createBulkFiles(), clock: systemClock, random: systemRandom, logger },
    );
    const fetch: FetchWal = async (name, destination) => {
      try {
        await restorer.restore({ name, destination });
        return true;
      } catch (error) {
        if (error instanceof WalError && error.kind === "notFound") return false;
        throw error;
      }
    };
    try {
      return await replay(restore, fetch);
    } finally {
      await restorer.close();
    }
  });
}

function tell(ours: readonly Replay[], peer: readonly Replay[], runs: number): void {
  const [segments, theirs] = [median(ours.map((one) => one.segments)), median(peer.map((one) => one.segments))];
  const context = { segments, peerSegments: theirs, runs, peer: "Barman 3.19.1, one process a segment, same run" };
  const figure = { bench: "replay", context };
  const share = (list: readonly Replay[]) => median(list.map(({ waiting }) => waiting * 100));
  const rate = (list: readonly Replay[]) => median(list.map((one) => one.segments / one.seconds));
  report({ ...figure, metric: "waiting for WAL", ours: share(ours), peer: share(peer), unit: "%", goal: { most: 5 } });
  report({ ...figure, metric: "replay", ours: rate(ours), peer: rate(peer), unit: "segments/s" });
}
