import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { ObjectStore } from "../../src/ports/object-store.ts";
import { type PostgresServer, startPostgres } from "../../test/support/postgres-server.ts";
import { startWalSpool, type WalSpool } from "../../test/support/wal-spool.ts";

const run = promisify(execFile);
/** What pgbench makes of one scale, its index included. */
const mbOfScale = 15;

/** A server with a database of a size, whose WAL goes into the archive. */
export interface BaseSource {
  server: PostgresServer;
  place: { path: string; serverName: string };
  stop(): Promise<void>;
}

/** Makes the server: half of the database compresses well (pgbench's accounts), half is hexadecimal noise. */
export async function startBaseSource(store: ObjectStore, sizeMb: number): Promise<BaseSource> {
  const folder = await mkdtemp(join(tmpdir(), "bench-base-"));
  await chmod(folder, 0o755);
  const place = { path: "bench", serverName: "base" };
  const ready = join(folder, "ready");
  const spools: WalSpool[] = [];
  const server = await startPostgres({
    settings: { archive_mode: "on", max_wal_senders: "4", max_wal_size: "4GB", shared_buffers: "256MB" },
    async prepare(dataDir, owner) {
      const spool = await startWalSpool({ store, ...place, folder: join(folder, "wal"), owner });
      spools.push(spool);
      // What only fills the database need not be archived.
      const command = `test ! -e ${ready} || (${spool.archiveCommand})`.replaceAll("'", "''");
      await writeFile(join(dataDir, "postgresql.auto.conf"), `archive_command = '${command}'\nautovacuum = off\n`);
    },
  });
  const stop = async () => {
    await server.stop();
    for (const spool of spools) await spool.stop();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await fill(server, sizeMb);
    await writeFile(ready, "");
    return { server, place, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function fill(server: PostgresServer, sizeMb: number): Promise<void> {
  const where = ["-h", server.socketDir, "-p", String(server.port), "-U", "postgres"];
  const scale = Math.max(1, Math.round(sizeMb / 2 / mbOfScale));
  await run(join(server.binDir, "pgbench"), ["-i", "-q", "-s", String(scale), ...where, "postgres"], {
    maxBuffer: 64 << 20,
  });
  const noise = `head -c ${Math.round(sizeMb / 4)}M /dev/urandom | od -An -v -tx1 -w1000 | tr -d " "`;
  const statements = [
    "CREATE TABLE noise (body text)",
    "ALTER TABLE noise ALTER body SET STORAGE plain",
    `COPY noise FROM PROGRAM '${noise}'`,
    "CHECKPOINT",
  ];
  const commands = statements.flatMap((text) => ["-c", text]);
  await run(join(server.binDir, "psql"), [...where, "-v", "ON_ERROR_STOP=1", "-q", ...commands, "postgres"]);
}
