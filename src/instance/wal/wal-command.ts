import { readdir } from "node:fs/promises";
import { paths } from "../../api/constants.ts";
import { askWalServer } from "./wal-client.ts";

/** `wal-archive` and `wal-restore` without the launcher: asks the resident manager; gives the exit code that it says. */
export async function walCommand(fields: readonly string[]): Promise<number> {
  const scratch = process.env["CNPG_TS_ROOT"] || paths.scratch;
  const answer = await askWalServer(`${scratch}/ipc/wal.sock`, [...fields, process.cwd()]);
  if (answer.code !== 0) process.stderr.write(`${answer.message || `${fields[0]} ${fields[1]}: not found`}\n`);
  return answer.code;
}

/** `show wal-archive-queue`: names of the WAL files that wait to be archived. Never fails. */
export async function listArchiveQueue(environment: Readonly<Record<string, string | undefined>>): Promise<string[]> {
  const folder = `${environment["PGDATA"] || paths.pgData}/pg_wal/archive_status`;
  const names = await readdir(folder).catch(() => []);
  return names.flatMap((name) => (name.endsWith(".ready") ? [name.slice(0, -".ready".length)] : [])).sort();
}
