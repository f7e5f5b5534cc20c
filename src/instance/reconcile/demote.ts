import type { Cluster } from "../../api/generated/cluster.ts";
import { planRewind } from "../../plan/instance/rewind.ts";
import { redactConninfo } from "../../postgres/conninfo.ts";
import { shutDownStates } from "../../postgres/control-data.ts";
import { parseLsn } from "../../postgres/lsn.ts";
import { parseTimelineHistory, type TimelineSwitch } from "../../postgres/timeline-history.ts";
import { defaultWalSegmentBytes } from "../../postgres/wal-name.ts";
import { mySlotName, primaryConninfo, setAutoConfMode, writeStandbyOverride } from "../configuration-files.ts";
import type { InstanceContext } from "../instance-context.ts";
import { drainReadyWal } from "../wal/former-wal.ts";
import { keepUnarchivedWal } from "./kept-wal.ts";
import { identifyServer, isSettledPrimary } from "./source-server.ts";

/** Marks the data folder as a standby's; from here on PostgreSQL follows when it starts. */
async function becomeStandby(context: InstanceContext, cluster: Cluster): Promise<void> {
  await writeStandbyOverride(context, { slotName: mySlotName(context, cluster) });
  await context.files.writeAtomic(context.paths.standbySignal, "", 0o600);
}

async function restoreControlFile(context: InstanceContext): Promise<void> {
  const { files, paths } = context;
  const saved = `${paths.controlFile}.old`;
  if (!(await files.exists(saved))) return;
  // A rewind that was killed can leave the control file empty; nothing starts without it.
  if ((await files.read(paths.controlFile))?.length) return;
  context.logger.warning("Putting back the control file that an interrupted pg_rewind had emptied");
  await context.processes.run("cp", ["-p", saved, paths.controlFile]);
}

async function runRewind(context: InstanceContext, signal: AbortSignal): Promise<void> {
  const { files, paths, processes, logger, settings } = context;
  await restoreControlFile(context);
  const saved = `${paths.controlFile}.old`;
  await processes.run("cp", ["-p", paths.controlFile, saved]);
  const conninfo = primaryConninfo(context);
  const args = ["-P", "--source-server", conninfo, "--target-pgdata", paths.pgData, "--restore-target-wal"];
  logger.info("Starting up pg_rewind", { pgdata: paths.pgData, source: redactConninfo(conninfo) });
  const output = logger.child({ logger: "pg_rewind" });
  const lines: string[] = [];
  context.state.rewinding = true;
  try {
    const result = await processes.run("pg_rewind", args, {
      env: { ...settings.environment },
      signal,
      onLine: (pipe, line) => {
        lines.push(line);
        output.info(line, { pipe });
      },
    });
    if (result.code !== 0) {
      throw new Error(
        `pg_rewind failed (${result.code ?? result.signal}): ${lines.at(-1) ?? "no output"}; it is tried again, and if it keeps ` +
          `failing, delete this instance's volume so that it is cloned anew`,
      );
    }
    await files.remove(saved);
  } finally {
    context.state.rewinding = false;
  }
}

/** Waits until the new primary answers and could serve as the source of a rewind. */
async function waitForPrimary(context: InstanceContext, signal: AbortSignal): Promise<void> {
  const { settings, logger, clock } = context;
  const source = { host: settings.primaryHost, port: settings.primaryPort, signal };
  for (let attempt = 1; ; attempt += 1) {
    signal.throwIfAborted();
    try {
      if (await isSettledPrimary(context, source)) return;
      if (attempt % 20 === 1) logger.info("Waiting for the new primary to settle", { host: source.host });
    } catch (error) {
      if (attempt % 20 === 1) logger.info("Waiting for the new primary to answer", { host: source.host, error });
    }
    await clock.sleep(250, signal);
  }
}

/** Whether this folder came to its timeline at the same places as the primary did. */
async function isSameHistory(
  context: InstanceContext,
  timeline: number,
  theirs: readonly TimelineSwitch[] | undefined,
): Promise<boolean | undefined> {
  const name = `${timeline.toString(16).toUpperCase().padStart(8, "0")}.history`;
  const text = timeline > 1 ? await context.files.read(`${context.paths.pgWal}/${name}`) : undefined;
  const mine = text === undefined ? undefined : parseTimelineHistory(text);
  if (!mine || !theirs) return undefined;
  const places = (history: readonly TimelineSwitch[]) => history.map((at) => `${at.timeline}:${at.switchPoint}`).join();
  return places(mine) === places(theirs);
}

/** Turns the folder of an old primary, which is not in use, into a standby's. */
export async function demote(
  context: InstanceContext,
  cluster: Cluster,
  options: { rewind: boolean; signal: AbortSignal },
): Promise<void> {
  const { logger, data, files, paths, settings } = context;
  const { signal } = options;
  if (options.rewind) {
    await waitForPrimary(context, signal);
    await files.remove(paths.postmasterPid);
    await setAutoConfMode(context, true);
    // pg_rewind and its recovery read restore_command from here.
    await writeStandbyOverride(context, { slotName: undefined });
    await restoreControlFile(context);
    const control = await data.control();
    const source = { host: settings.primaryHost, port: settings.primaryPort, signal };
    const timeline = control.timeline ?? 0;
    const identity = await identifyServer(context, { ...source, timeline });
    if (control.systemId !== undefined && identity.systemId !== control.systemId) {
      throw new Error(
        `${settings.primaryHost} is another database system (${identity.systemId}) than this data folder (${control.systemId}); ` +
          "delete this instance's volume so that it is cloned anew",
      );
    }
    const decision = planRewind({
      cleanShutdown: shutDownStates.includes(control.state ?? ""),
      timeline,
      checkpoint: parseLsn(control.checkpointLsn ?? "") ?? 0n,
      primaryTimeline: identity.timeline,
      primaryPosition: identity.position,
      switchPoint: identity.switchPoint,
      sameHistory: await isSameHistory(context, timeline, identity.history),
    });
    if (decision.kind === "clone") {
      throw new Error(
        `${decision.reason}, and pg_rewind can't tell them apart; check which data is newer, then delete this instance's volume ` +
          "so that it is cloned anew",
      );
    }
    logger.info(decision.kind === "rewind" ? "This old primary is rewound" : "This old primary can follow as it is", {
      reason: decision.reason,
      timeline,
      primaryTimeline: identity.timeline,
    });
    await drainReadyWal(
      context,
      {
        timeline: identity.timeline,
        position: identity.position ?? 0n,
        history: identity.history ?? [],
        segmentBytes: control.walSegmentBytes ?? defaultWalSegmentBytes,
      },
      signal,
    );
    await keepUnarchivedWal(context, cluster, signal);
    if (decision.kind === "rewind") await runRewind(context, signal);
  }
  logger.info("Demoting this instance to a standby");
  await becomeStandby(context, cluster);
}
