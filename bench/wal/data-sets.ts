import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { chown, mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { cacheRoot } from "../../local/tools/cache.ts";
import { parseWalSegment } from "../../src/postgres/wal-name.ts";
import { type PostgresServer, startPostgres } from "../../test/support/postgres-server.ts";

const run = promisify(execFile);

/** Real WAL of one kind of work. */
export interface WalDataSet {
  name: string;
  folder: string;
  /** Segment names, ascending. */
  segments: readonly string[];
}

type Work = (server: PostgresServer) => Promise<unknown>;

/** How long the TPC-B work runs when the data set is made; ten minutes unless told otherwise. */
const tpcbSeconds = Number(process.env["BENCH_TPCB_SECONDS"] ?? 600);

const works: Readonly<Record<string, Work>> = {
  hex: (server) =>
    sql(
      server,
      "create table noise (body text); alter table noise alter body set storage external;" +
        "insert into noise select (select string_agg(encode(sha256((random()::text || i || j)::bytea), 'hex'), '')" +
        " from generate_series(1, 30) j) from generate_series(1, 90000) i;",
    ),
  "pgbench-init": (server) => pgbench(server, ["-i", "-s", "20", "-q"]),
  tpcb: async (server) => {
    await pgbench(server, ["-i", "-s", "10", "-q"]);
    await sql(server, "checkpoint");
    await pgbench(server, ["-T", String(tpcbSeconds), "-c", "4"]);
  },
};

export const dataSetNames = Object.keys(works);

/** The segments of a data set, made once by a real server and kept in the cache. */
export async function walDataSet(name: string): Promise<WalDataSet> {
  const kind = name === "tpcb" ? `tpcb-${tpcbSeconds}` : name;
  const folder = join(cacheRoot(), "bench-wal", kind);
  if (!existsSync(join(folder, "complete"))) await make(name, folder);
  const segments = (await readdir(folder)).filter((file) => parseWalSegment(file) !== undefined).sort();
  if (segments.length === 0) throw new Error(`data set ${name} holds no segment`);
  return { name, folder, segments };
}

/** Segments spread evenly over a data set. */
export function sample(set: WalDataSet, count: number): string[] {
  const step = Math.max(1, set.segments.length / count);
  const picked = Array.from(
    { length: Math.min(count, set.segments.length) },
    (_, at) => set.segments[Math.floor(at * step)],
  );
  return picked.filter((segment) => segment !== undefined);
}

async function make(name: string, folder: string): Promise<void> {
  const work = works[name];
  if (!work) throw new Error(`no data set ${name}`);
  await rm(folder, { recursive: true, force: true });
  // The server's user writes here, and may not be able to pass through the cache.
  const server = await startPostgres({
    settings: { archive_mode: "on", archive_command: "cp %p archive/%f", max_wal_size: "4GB", wal_level: "replica" },
    prepare: async (dataDir, user) => {
      await mkdir(join(dataDir, "archive"));
      await chown(join(dataDir, "archive"), user.uid, user.gid);
    },
  });
  try {
    await work(server);
    await sql(server, "select pg_switch_wal()");
    await sql(server, "checkpoint");
    const archive = join(server.dataDir, "archive");
    const [current] = (await sql(server, "select pg_walfile_name(pg_current_wal_lsn())")).split("\n");
    await untilArchived(archive, current ?? "");
    await mkdir(folder, { recursive: true });
    await run("cp", ["-r", `${archive}/.`, folder]);
    await writeFile(join(folder, "complete"), "");
  } finally {
    await server.stop();
  }
}

/** Waits until the archiver has caught up: no segment below the current one is missing any more. */
async function untilArchived(archive: string, current: string): Promise<void> {
  let last = -1;
  for (let still = 0; still < 20; ) {
    const count = (await readdir(archive)).filter((file) => file < current).length;
    still = count === last ? still + 1 : 0;
    last = count;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

async function sql(server: PostgresServer, text: string): Promise<string> {
  const args = ["-h", server.socketDir, "-p", String(server.port), "-U", "postgres", "-Atqc", text];
  return (await run(join(server.binDir, "psql"), args)).stdout.trim();
}

async function pgbench(server: PostgresServer, args: readonly string[]): Promise<void> {
  await run(
    join(server.binDir, "pgbench"),
    [...args, "-h", server.socketDir, "-p", String(server.port), "-U", "postgres", "postgres"],
    {
      maxBuffer: 64 << 20,
    },
  );
}
