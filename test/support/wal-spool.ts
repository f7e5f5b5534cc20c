import { chmod, chown, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { WalArchiver } from "../../src/archive/wal-archiver.ts";
import type { ObjectStore } from "../../src/ports/object-store.ts";
import { archivePorts } from "./archive-ports.ts";

export interface WalSpool {
  /** For the server whose WAL it is. */
  archiveCommand: string;
  /** The same as a line of a configuration file, or behind `ALTER SYSTEM SET`. */
  archiveSetting: string;
  stop(): Promise<void>;
}

/** Lets a server leave its WAL in a folder, and archives what comes there by our engine. */
export async function startWalSpool(options: {
  store: ObjectStore;
  path: string;
  serverName: string;
  /** Made; removed by `stop`. */
  folder: string;
  owner: { uid: number; gid: number };
}): Promise<WalSpool> {
  const { folder, owner, store, path, serverName } = options;
  const wal = join(folder, "spool");
  await mkdir(join(wal, "archive_status"), { recursive: true });
  await chmod(folder, 0o755);
  await chown(wal, owner.uid, owner.gid);
  const archiver = new WalArchiver(
    {
      path,
      serverName,
      destination: `spool/${path}`,
      walFolder: wal,
      recordFolder: join(folder, "records"),
      compression: "gzip",
      level: 1,
    },
    archivePorts(store),
  );
  let stopped = false;
  let failure: unknown;
  const loop = (async () => {
    while (!stopped) {
      const names = (await readdir(wal)).filter((name) => name !== "archive_status" && !name.endsWith(".tmp")).sort();
      for (const name of names) {
        await archiver.archive({ path: join(wal, name) });
        await rm(join(wal, name));
      }
      await sleep(50);
    }
  })().catch((error: unknown) => {
    failure = error;
  });
  const archiveCommand = `cp %p ${wal}/%f.tmp && mv ${wal}/%f.tmp ${wal}/%f`;
  return {
    archiveCommand,
    archiveSetting: `archive_command = '${archiveCommand.replaceAll("'", "''")}'`,
    async stop() {
      stopped = true;
      await loop;
      await archiver.close();
      await rm(folder, { recursive: true, force: true });
      if (failure !== undefined) throw failure;
    },
  };
}
