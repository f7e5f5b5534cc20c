import { dirname } from "node:path";
import type { Cluster } from "../../api/generated/cluster.ts";
import { annotations } from "../../api/labels.ts";
import { planRewindStep } from "../../plan/instance/rewind.ts";
import { redactConninfo } from "../../postgres/conninfo.ts";
import { copyPrimary } from "../bootstrap/primary-copy.ts";
import { mySlotName, primaryConninfo, writeStandbyOverride } from "../configuration-files.ts";
import { diskFullError, isDiskFull } from "../disk-full.ts";
import type { InstanceContext } from "../instance-context.ts";
import { readRewindRecord, removeRewindRecord, writeRewindRecord } from "./rewind-record.ts";

/** Puts back the control file that a rewind which was killed left empty; nothing starts without it. */
export async function restoreControlFile(context: InstanceContext): Promise<void> {
  const { files, paths } = context;
  const saved = `${paths.controlFile}.old`;
  if (!(await files.exists(saved))) return;
  if ((await files.read(paths.controlFile))?.length) return;
  context.logger.warning("Putting back the control file that an interrupted pg_rewind had emptied");
  await context.processes.run("cp", ["-p", saved, paths.controlFile]);
}

async function runRewind(context: InstanceContext, signal: AbortSignal): Promise<void> {
  const { files, paths, processes, logger, settings } = context;
  await restoreControlFile(context);
  const saved = `${paths.controlFile}.old`;
  await processes.run("cp", ["-p", paths.controlFile, saved]);
  // A kubelet that mounts a volume opens it to the pod's group, and the server that pg_rewind starts wants none of that.
  await files.chmod(paths.pgData, 0o700);
  const conninfo = primaryConninfo(context);
  const args = ["-P", "--source-server", conninfo, "--target-pgdata", paths.pgData, "--restore-target-wal"];
  logger.info("Starting up pg_rewind", { pgdata: paths.pgData, source: redactConninfo(conninfo) });
  const output = logger.child({ logger: "pg_rewind" });
  const lines: string[] = [];
  const result = await processes.run("pg_rewind", args, {
    env: { ...settings.environment },
    signal,
    onLine: (pipe, line) => {
      lines.push(line);
      output.info(line, { pipe });
    },
  });
  if (result.code !== 0) {
    const message = `pg_rewind failed (${result.code ?? result.signal}): ${lines.at(-1) ?? "no output"}`;
    throw diskFullError(message, lines) ?? new Error(message);
  }
  await files.remove(saved);
}

function cloneFolder(context: InstanceContext): string {
  return `${context.paths.pgData}.clone`;
}

/** Copies the primary beside the old folder, which goes only when the copy is whole. */
async function cloneAnew(context: InstanceContext, cluster: Cluster, signal: AbortSignal): Promise<void> {
  const { files } = context;
  const clone = cloneFolder(context);
  await files.remove(clone, { recursive: true });
  try {
    await copyPrimary(context, { folder: clone, signal });
  } catch (error) {
    // Half a copy only takes the space that the old folder may need.
    await files.remove(clone, { recursive: true }).catch(() => undefined);
    throw error;
  }
  const inClone = { ...context, paths: { ...context.paths, overrideConf: `${clone}/override.conf` } };
  await writeStandbyOverride(inClone, { slotName: mySlotName(context, cluster) });
  await files.writeAtomic(`${clone}/standby.signal`, "", 0o600);
  await writeRewindRecord(context, { attempts: 0, swapping: true });
  await finishClone(context);
}

/** Lets a whole clone take the place of the folder that could not be rewound; may be killed and run again at any point. */
export async function finishClone(context: InstanceContext): Promise<void> {
  const { files, paths, logger } = context;
  if (!(await readRewindRecord(context))?.swapping) return;
  const clone = cloneFolder(context);
  const aside = `${paths.pgData}.failed_rewind`;
  if (await files.exists(clone)) {
    if (await files.exists(paths.pgData)) {
      await files.remove(aside, { recursive: true });
      await files.rename(paths.pgData, aside);
    }
    await files.rename(clone, paths.pgData);
  }
  await files.remove(aside, { recursive: true });
  // The clone brought its WAL along; what lies on the WAL volume is the old folder's, and the next step moves the new one there.
  const walOnVolume = `${paths.walVolume}/pg_wal`;
  if ((await files.readLink(paths.pgWal)) === undefined && (await files.exists(walOnVolume))) {
    await files.remove(walOnVolume, { recursive: true });
  }
  await context.processes.run("sync", ["-f", dirname(paths.pgData)]);
  await removeRewindRecord(context);
  logger.info("This instance was cloned anew in place of the folder that could not be rewound", {
    pgdata: paths.pgData,
  });
}

/**
 * Takes back what only an old primary wrote: by pg_rewind, and by a new clone when that keeps failing. Resolves with true when
 * the folder is a standby's already.
 */
export async function rewindOrClone(context: InstanceContext, cluster: Cluster, signal: AbortSignal): Promise<boolean> {
  const attempts = (await readRewindRecord(context))?.attempts ?? 0;
  const step = planRewindStep({
    attempts,
    policy: cluster.metadata.annotations?.[annotations.failedRewind] ?? "clone",
    tablespaces: (await context.files.list(`${context.paths.pgData}/pg_tblspc`)).length > 0,
  });
  if (step.kind === "giveUp") throw new Error(step.reason);
  context.state.rewinding = true;
  try {
    if (step.kind === "clone") {
      context.logger.warning("This instance is cloned anew", { reason: step.reason });
      await cloneAnew(context, cluster, signal);
      return true;
    }
    // Before the first byte changes: a start after a kill must not take the folder for a server's.
    await writeRewindRecord(context, { attempts: attempts + 1, swapping: false });
    await runRewind(context, signal).catch(async (error: unknown) => {
      // More space helps then, and no clone, which needs more of it.
      if (isDiskFull(error)) await writeRewindRecord(context, { attempts, swapping: false });
      throw error;
    });
    return false;
  } finally {
    context.state.rewinding = false;
  }
}
