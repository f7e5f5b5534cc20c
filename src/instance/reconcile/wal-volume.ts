import type { InstanceContext } from "../instance-context.ts";

async function runTool(context: InstanceContext, program: string, args: readonly string[]): Promise<void> {
  const result = await context.processes.run(program, args);
  if (result.code === 0) return;
  const reason = result.stderr.trim() || `ended with ${result.code ?? result.signal}`;
  throw new Error(`could not move pg_wal to its own volume: ${program} ${args.join(" ")}: ${reason}`);
}

/**
 * Moves `pg_wal` to the WAL volume when there is one and PGDATA still has a folder of its own. May be killed and run again
 * at any point: the old folder goes only when the copy and the link to it are on disk.
 */
export async function moveWalToVolume(context: InstanceContext): Promise<void> {
  const { files, paths, logger } = context;
  if (!(await files.exists(paths.walVolume))) return;
  const target = `${paths.walVolume}/pg_wal`;
  const aside = `${paths.pgData}/pg_wal.moved`;
  const link = await files.readLink(paths.pgWal);
  if (link !== undefined && link !== target) return;
  const isFolder = link === undefined && (await files.exists(paths.pgWal));
  if (isFolder) await copyWal(context, target, aside);
  if (link === undefined) {
    if (!(await files.exists(paths.pgData)) || !(await files.exists(target))) return;
    logger.info("Linking pg_wal to its own volume", { from: paths.pgWal, to: target });
    await files.symlink(target, paths.pgWal);
  }
  if (!(await files.exists(aside))) return;
  await runTool(context, "sync", ["-f", paths.pgData]);
  await files.remove(aside, { recursive: true });
}

/** Copies the folder and puts it aside; names that an earlier attempt copied are written again. */
async function copyWal(context: InstanceContext, target: string, aside: string): Promise<void> {
  const { files, paths, logger } = context;
  if (await files.exists(aside)) {
    throw new Error(`${aside} and ${paths.pgWal} are both there: find out which one PostgreSQL used, remove the other`);
  }
  logger.info("Moving pg_wal to its own volume", { from: paths.pgWal, to: target });
  await files.makeDirectory(target, 0o700);
  await runTool(context, "cp", ["-a", `${paths.pgWal}/.`, `${target}/`]);
  await runTool(context, "sync", ["-f", target]);
  await files.rename(paths.pgWal, aside);
}
