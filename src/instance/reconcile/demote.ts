import { isReplicaCluster } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { planRewind } from "../../plan/instance/rewind.ts";
import { type ControlData, shutDownStates } from "../../postgres/control-data.ts";
import { parseLsn } from "../../postgres/lsn.ts";
import { parseTimelineHistory, type TimelineSwitch } from "../../postgres/timeline-history.ts";
import { defaultWalSegmentBytes } from "../../postgres/wal-name.ts";
import { mySlotName, setAutoConfMode, writeStandbyOverride } from "../configuration-files.ts";
import type { InstanceContext } from "../instance-context.ts";
import { drainReadyWal } from "../wal/former-wal.ts";
import { keepUnarchivedWal } from "./kept-wal.ts";
import { restoreControlFile, rewindOrClone } from "./rewind.ts";
import { readRewindRecord, removeRewindRecord } from "./rewind-record.ts";
import { identifyServer, isSettledPrimary } from "./source-server.ts";

/** Marks the data folder as a standby's; from here on PostgreSQL follows when it starts. */
async function becomeStandby(context: InstanceContext, cluster: Cluster): Promise<void> {
  await writeStandbyOverride(context, { slotName: mySlotName(context, cluster) });
  await context.files.writeAtomic(context.paths.standbySignal, "", 0o600);
  await removeRewindRecord(context);
}

/** Waits until the new primary answers and could serve as the source of a rewind. */
async function waitForPrimary(context: InstanceContext, cluster: Cluster, signal: AbortSignal): Promise<void> {
  const { settings, logger, clock } = context;
  const source = { host: settings.primaryHost, port: settings.primaryPort, signal };
  for (let attempt = 1; ; attempt += 1) {
    signal.throwIfAborted();
    try {
      if (await isSettledPrimary(context, { ...source, follows: isReplicaCluster(cluster) })) return;
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

/** Whether the folder has to be taken back to where the new primary left its history. */
async function needsRewind(
  context: InstanceContext,
  control: ControlData,
  identity: Awaited<ReturnType<typeof identifyServer>>,
): Promise<boolean> {
  const timeline = control.timeline ?? 0;
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
  // Who looks for what pg_rewind said finds here that there was nothing to be done.
  context.logger
    .child({ logger: "pg_rewind" })
    .info(decision.kind === "rewind" ? "This old primary is rewound" : "This old primary can follow as it is", {
      reason: decision.reason,
      timeline,
      primaryTimeline: identity.timeline,
    });
  return decision.kind === "rewind";
}

/** Brings the folder to a point of the new primary's history; true when it is a standby's already. */
async function joinHistory(context: InstanceContext, cluster: Cluster, signal: AbortSignal): Promise<boolean> {
  const { data, files, paths, settings, logger } = context;
  await waitForPrimary(context, cluster, signal);
  await files.remove(paths.postmasterPid);
  await setAutoConfMode(context, true);
  // pg_rewind and its recovery read restore_command from here.
  await writeStandbyOverride(context, { slotName: undefined });
  await restoreControlFile(context);
  const control = await data.control();
  const source = { host: settings.primaryHost, port: settings.primaryPort, signal };
  const identity = await identifyServer(context, { ...source, timeline: control.timeline ?? 0 });
  if (control.systemId !== undefined && identity.systemId !== control.systemId) {
    throw new Error(
      `${settings.primaryHost} is another database system (${identity.systemId}) than this data folder (${control.systemId}); ` +
        "delete this instance's volume so that it is cloned anew",
    );
  }
  const unfinished = await readRewindRecord(context);
  if (unfinished) {
    // Its WAL may be of both servers by now, so nothing of it is archived; what only this one had was copied before.
    logger.info("A rewind did not come to its end and is taken up again", { attempts: unfinished.attempts });
    return rewindOrClone(context, cluster, signal);
  }
  const rewind = await needsRewind(context, control, identity);
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
  return rewind && rewindOrClone(context, cluster, signal);
}

/** Turns the folder of an old primary, which is not in use, into a standby's. */
export async function demote(
  context: InstanceContext,
  cluster: Cluster,
  options: { rewind: boolean; signal: AbortSignal },
): Promise<void> {
  if (options.rewind && (await joinHistory(context, cluster, options.signal))) return;
  context.logger.info("Demoting this instance to a standby");
  await becomeStandby(context, cluster);
}
