import { chmod, mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { listWalObjects } from "../../src/archive/archive-reader.ts";
import { WalRestorer } from "../../src/archive/wal-restorer.ts";
import { serverKeys } from "../../src/barman/object-keys.ts";
import { listAll, type ObjectStore } from "../../src/ports/object-store.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { archivePorts } from "./archive-ports.ts";
import type { PostgresServer } from "./postgres-server.ts";
import type { serverSessions } from "./server-session.ts";

export interface ArchivePlace {
  store: ObjectStore;
  path: string;
  serverName: string;
}

const attempts = 1200;
const pauseMs = 100;

/**
 * Brings the WAL of an archive into a folder of its own, by our engine unless `fetch` is given; gives the settings of a recovery
 * from there.
 */
export async function fetchArchivedWal(
  { store, path, serverName }: ArchivePlace,
  options: {
    /** Where the folder is made; readable for the server. */
    folder: string;
    /** The first segment that is needed. @default all of them */
    first?: string;
    fetch?: ((name: string, destination: string) => Promise<void>) | undefined;
  },
): Promise<{ restore_command: string; recovery_target_action: string }> {
  const wal = await mkdtemp(join(options.folder, "fetched-"));
  await chmod(wal, 0o755);
  const settings = { path, serverName, spoolFolder: `${wal}-ahead`, prefetch: 0 };
  const restorer = new WalRestorer(settings, archivePorts(store));
  const ours = (name: string, destination: string) => restorer.restore({ name, destination });
  for await (const { wal: file } of listWalObjects(store, serverKeys(path, serverName))) {
    if (file.kind === "backupLabel" || (file.kind === "segment" && file.name < (options.first ?? ""))) continue;
    await (options.fetch ?? ours)(file.name, join(wal, file.name));
    await chmod(join(wal, file.name), 0o644);
  }
  await restorer.close();
  return { restore_command: `cp ${wal}/%f %p`, recovery_target_action: "promote" };
}

/** Waits until an archive holds a WAL file. */
export async function untilArchived({ store, path, serverName }: ArchivePlace, name: string): Promise<void> {
  const prefix = serverKeys(path, serverName).wal(name);
  for (let attempt = 0; attempt < attempts; attempt++) {
    if ((await listAll(store, prefix)).objects.length > 0) return;
    await systemClock.sleep(pauseMs);
  }
  throw new Error(`${name} does not come into the archive`);
}

/** Waits until a recovery has ended. */
export async function untilPromoted(
  server: PostgresServer,
  runSql: ReturnType<typeof serverSessions>["runSql"],
): Promise<void> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const [row] = await runSql(server, "SELECT pg_is_in_recovery() AS recovering");
    if (row?.["recovering"] === false) return;
    await systemClock.sleep(pauseMs);
  }
  throw new Error(`the server does not end its recovery: ${server.output()}`);
}
