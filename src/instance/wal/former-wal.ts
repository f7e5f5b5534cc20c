// WAL of a former primary that the archive still lacks: what the timeline that lives on shares is archived, before the instance
// follows or, from the copies beside PGDATA, after it (safety protocol §5.5).
import { dirname } from "node:path";
import { planDrain, type SharedHistory } from "../../plan/instance/drain.ts";
import { parseLsn } from "../../postgres/lsn.ts";
import { parseTimelineHistory } from "../../postgres/timeline-history.ts";
import { defaultWalSegmentBytes, formatHistoryName, parseWalFileName } from "../../postgres/wal-name.ts";
import type { InstanceContext } from "../instance-context.ts";
import { keptPrefix } from "../reconcile/kept-wal.ts";

/** How long one file may take before the instance follows without having archived it; its copy is archived later. */
const fileLimitMs = 60_000;
const copiesEveryMs = 60_000;

const ready = ".ready";

/** False when it cannot be archived now. */
async function tryArchive(context: InstanceContext, path: string, signal: AbortSignal): Promise<boolean> {
  const { archiveWal, clock, logger } = context;
  if (!archiveWal) return false;
  const done = new AbortController();
  const late = clock.sleep(fileLimitMs, AbortSignal.any([signal, done.signal])).then(
    () => {
      throw new Error(`not archived within ${fileLimitMs} ms`);
    },
    () => false,
  );
  try {
    return await Promise.race([archiveWal(path), late]);
  } catch (error) {
    logger.warning("WAL of the former primary could not be archived yet", { walName: path, error });
    return false;
  } finally {
    done.abort();
  }
}

/** Archives what waits in `pg_wal`, as far as it is shared; stops at the first file that cannot be archived now. */
export async function drainReadyWal(
  context: InstanceContext,
  shared: SharedHistory,
  signal: AbortSignal,
): Promise<void> {
  const { files, paths, logger } = context;
  const folder = `${paths.pgWal}/archive_status`;
  const names = (await files.list(folder)).filter((name) => name.endsWith(ready));
  const waiting = names.map((name) => name.slice(0, -ready.length));
  const { archive, divergent } = planDrain(waiting, shared);
  if (divergent.length > 0) {
    logger.info("WAL of the former primary is not on the timeline that lives on", { files: divergent });
  }
  for (const name of archive) {
    if (!(await tryArchive(context, `${paths.pgWal}/${name}`, signal))) return;
    await files.rename(`${folder}/${name}${ready}`, `${folder}/${name}.done`);
    logger.info("Archived WAL of the former primary", { walName: name });
  }
}

/** What this standby shares with its primary: its own timeline up to its last checkpoint, and how it came to it. */
async function readShared(context: InstanceContext): Promise<SharedHistory | undefined> {
  const { data, files, paths } = context;
  const control = await data.tryControl();
  const position = parseLsn(control?.checkpointLsn ?? "");
  if (!control?.timeline || position === undefined) return undefined;
  const { timeline, walSegmentBytes: segmentBytes = defaultWalSegmentBytes } = control;
  const text = timeline === 1 ? "" : await files.read(`${paths.pgWal}/${formatHistoryName(timeline)}`);
  const history = text === undefined ? undefined : parseTimelineHistory(text);
  return history && { timeline, position, history, segmentBytes };
}

/** Archives shared files of the copies beside PGDATA, and removes those that are archived. */
export async function drainKeptWal(context: InstanceContext, signal: AbortSignal): Promise<void> {
  const { files, paths, logger } = context;
  const parent = dirname(paths.pgData);
  const folders = (await files.list(parent)).filter((name) => name.startsWith(keptPrefix));
  if (folders.length === 0) return;
  const shared = await readShared(context);
  if (!shared) return;
  for (const folder of folders) {
    const names = (await files.list(`${parent}/${folder}`)).filter((name) => parseWalFileName(name));
    for (const name of planDrain(names, shared).archive) {
      const path = `${parent}/${folder}/${name}`;
      if (!(await tryArchive(context, path, signal))) return;
      await files.remove(path);
      logger.info("Archived WAL of the former primary", { walName: path });
    }
    if ((await files.list(`${parent}/${folder}`)).length === 0) {
      await files.remove(`${parent}/${folder}`, { recursive: true });
    }
  }
}

/** Looks after the copies until the signal. */
export async function followKeptWal(context: InstanceContext, signal: AbortSignal): Promise<void> {
  const { clock, state, data, logger } = context;
  while (!signal.aborted) {
    await clock.sleep(copiesEveryMs, signal).catch(() => undefined);
    // A folder that is being rewound or was never made a standby's tells nothing of what is shared.
    if (signal.aborted || state.rewinding || data.knownRole !== "standby") continue;
    await drainKeptWal(context, signal).catch((error: unknown) =>
      logger.warning("Copies of unarchived WAL could not be looked after", { error }),
    );
  }
}
