import { execFile } from "node:child_process";
import { appendFile, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type PostgresServer, startPostgres } from "./postgres-server.ts";

const run = promisify(execFile);

/** Starts a server on a restored data folder; `restore` fills the empty folder it is given, and `recovery` are the settings that end its replay. */
export async function startRestored(options: {
  restore(dataFolder: string): Promise<void>;
  recovery: Readonly<Record<string, string>>;
  /** Folders beside the data folder that the server must own. */
  ownedFolders?: readonly string[];
}): Promise<PostgresServer> {
  return startPostgres({
    settings: options.recovery,
    async prepare(dataFolder, user) {
      const settings = await readFile(join(dataFolder, "postgresql.conf"), "utf8");
      for (const name of await readdir(dataFolder)) await rm(join(dataFolder, name), { recursive: true });
      await options.restore(dataFolder);
      await writeFile(join(dataFolder, "postgresql.conf"), settings);
      await appendFile(join(dataFolder, "postgresql.conf"), "\narchive_mode = off\n");
      await writeFile(join(dataFolder, "recovery.signal"), "");
      const owned = [dataFolder, ...(options.ownedFolders ?? [])];
      await run("chown", ["-R", `${user.uid}:${user.gid}`, ...owned]);
    },
  });
}
