import type { Files } from "../../ports/files.ts";
import { parseWalSegment } from "../../postgres/wal-name.ts";
import { StatusError } from "../framework/status-error.ts";

/** The segment that somebody announced as still required: retention stays below it, whatever the backups need. */
export interface WalBound {
  /** `undefined`: nobody announced one. */
  get(): Promise<string | undefined>;
  /** An empty name withdraws the announcement. */
  set(walName: string): Promise<void>;
}

/** Keeps the bound in a file, so that a restart of the container does not lift it. */
export function createWalBound(files: Files, folder: string): WalBound {
  const path = `${folder}/first-required`;
  return {
    async get() {
      const name = (await files.read(path))?.trim();
      return name ? name : undefined;
    },
    async set(walName) {
      if (walName === "") {
        await files.remove(path);
        return;
      }
      if (!parseWalSegment(walName)) {
        throw new StatusError("INVALID_ARGUMENT", `${JSON.stringify(walName)} is not the name of a WAL segment`);
      }
      await files.makeDirectory(folder, 0o700);
      await files.writeAtomic(path, `${walName}\n`, 0o600);
    },
  };
}
