import { dirname } from "node:path";
import { walArchiverPlugin } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { planKeptWal } from "../../plan/instance/rewind.ts";
import type { InstanceContext } from "../instance-context.ts";

/** Folders beside PGDATA with copies of WAL that the archive lacks. */
export const keptPrefix = "unarchived_";

/** Folders beside PGDATA into which earlier attempts put WAL. */
async function earlierFolders(context: InstanceContext, parent: string): Promise<string[]> {
  const names = await context.files.list(parent);
  return names.filter((name) => name.startsWith(keptPrefix)).map((name) => `${parent}/${name}`);
}

async function isKept(context: InstanceContext, folders: readonly string[], name: string): Promise<boolean> {
  for (const folder of folders) {
    const copy = `${folder}/${name}`;
    if (!(await context.files.exists(copy))) continue;
    // A copy that was cut off differs.
    const result = await context.processes.run("cmp", ["-s", `${context.paths.pgWal}/${name}`, copy]);
    if (result.code === 0) return true;
  }
  return false;
}

async function run(context: InstanceContext, signal: AbortSignal, command: string, args: string[]): Promise<void> {
  const result = await context.processes.run(command, args, { signal });
  if (result.code === 0) return;
  throw new Error(
    `WAL that is not archived yet could not be kept (${command}: ${result.stderr.trim()}); ` +
      "enlarge this instance's volume, or delete it so that the instance is cloned anew",
  );
}

/**
 * Copies WAL that the archive lacks into `unarchived_<time>` beside PGDATA: a rewind removes it, and so does a standby, which
 * does not wait for an archiver. What turns out to be shared is archived from there; nobody removes the rest.
 */
export async function keepUnarchivedWal(
  context: InstanceContext,
  cluster: Cluster,
  signal: AbortSignal,
): Promise<void> {
  const { files, paths, logger, clock } = context;
  const names = planKeptWal({
    archives: cluster.spec.backup?.barmanObjectStore !== undefined || walArchiverPlugin(cluster) !== undefined,
    archiveStatus: await files.list(`${paths.pgWal}/archive_status`),
    present: await files.list(paths.pgWal),
  });
  const parent = dirname(paths.pgData);
  const earlier = await earlierFolders(context, parent);
  const missing: string[] = [];
  for (const name of names) if (!(await isKept(context, earlier, name))) missing.push(name);
  if (missing.length === 0) return;
  const folder = `${parent}/${keptPrefix}${new Date(clock.now()).toISOString().replace(/[-:]|\.\d+/g, "")}`;
  await files.makeDirectory(folder, 0o700);
  for (const name of missing) {
    await run(context, signal, "cp", ["-p", `${paths.pgWal}/${name}`, `${folder}/${name}`]);
    // The original is removed later; a crash after it must not find both gone.
    await run(context, signal, "sync", [`${folder}/${name}`]);
  }
  await run(context, signal, "sync", [folder]);
  logger.warning(
    "WAL that is not archived was copied; what the new primary shares is archived from there, look at the rest if it is missed",
    {
      folder,
      files: missing,
    },
  );
}
