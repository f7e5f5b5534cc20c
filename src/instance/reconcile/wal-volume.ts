import type { InstanceContext } from "../instance-context.ts";

/** Moves `pg_wal` to the WAL volume when there is one and PGDATA still has a folder of its own. */
export async function moveWalToVolume(context: InstanceContext): Promise<void> {
  const { files, paths, processes, logger } = context;
  if (!(await files.exists(paths.walVolume)) || !(await files.exists(paths.pgWal))) return;
  if ((await files.readLink(paths.pgWal)) !== undefined) return;
  const target = `${paths.walVolume}/pg_wal`;
  logger.info("Moving pg_wal to its own volume", { from: paths.pgWal, to: target });
  await files.makeDirectory(target, 0o700);
  // Across file systems a rename is a copy; `mv` does both and a second run goes on where a first one stopped.
  const entries = await files.list(paths.pgWal);
  for (const name of entries) {
    const result = await processes.run("mv", ["-f", `${paths.pgWal}/${name}`, `${target}/${name}`]);
    if (result.code !== 0) throw new Error(`could not move ${name} to ${target}: ${result.stderr.trim()}`);
  }
  await files.remove(paths.pgWal, { recursive: true });
  await files.symlink(target, paths.pgWal);
}
