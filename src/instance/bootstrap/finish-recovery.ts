// From a restored data folder to a cluster of its own, or to a standby of its source (reference: backup §7.5).
import { applicationDatabase, isReplicaCluster } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { recoveryTargetSettings } from "../../plan/instance/recovery-settings.ts";
import { formatSettings } from "../../postgres/configuration.ts";
import { buildExternalConninfo, findExternalCluster } from "../../postgres/conninfo.ts";
import { buildSettings } from "../../postgres/custom-conf.ts";
import { raiseHotStandbyValues } from "../../postgres/hot-standby.ts";
import { mySlotName, writeStandbyOverride } from "../configuration-files.ts";
import type { InstanceContext } from "../instance-context.ts";
import { relocate } from "../instance-paths.ts";
import { ensureApplication } from "./application.ts";
import { writeInitialConfiguration, writeJobConfiguration, writeMinimalAccess } from "./initial-configuration.ts";
import { connectLocally } from "./post-init.ts";
import { TemporaryServerError, withTemporaryServer } from "./temporary-server.ts";

/** How the recovery gets its WAL. */
export interface RecoveryPlan {
  /** Lines for the configuration, the restore command among them. */
  configuration: string;
  /** Added to PostgreSQL's environment. */
  environment: Readonly<Record<string, string>>;
}

/** What every copy from elsewhere ends with: our configuration, and for a replica cluster the role of a standby. */
export async function finishCopy(context: InstanceContext, cluster: Cluster): Promise<"standby" | "primary"> {
  const { files, paths, settings } = context;
  await writeInitialConfiguration(context, cluster);
  await files.writeAtomic(paths.checkEmptyArchive, "", 0o600);
  if (!isReplicaCluster(cluster)) return "primary";
  const name = cluster.spec.replica?.source ?? "";
  const source = findExternalCluster(cluster, name);
  if (!source) throw new Error(`spec.replica.source "${name}" is not among spec.externalClusters; add it there`);
  const conninfo = relocate(settings, buildExternalConninfo(source));
  await writeStandbyOverride(context, { conninfo, slotName: undefined });
  await files.writeAtomic(paths.standbySignal, "", 0o600);
  return "standby";
}

/** Recovers up to the target and promotes; afterwards PGDATA is that of a primary that was shut down in order. */
export async function finishRecovery(context: InstanceContext, cluster: Cluster, plan: RecoveryPlan): Promise<void> {
  const { files, paths, settings } = context;
  if ((await finishCopy(context, cluster)) === "standby") return;
  await writeMinimalAccess(context);
  await files.writeAtomic(`${paths.pgData}/recovery.signal`, "", 0o600);
  await files.remove(paths.standbySignal);
  const recovering = {
    ...context,
    settings: { ...settings, environment: { ...settings.environment, ...plan.environment } },
  };
  await recover(recovering, cluster, plan.configuration);
  await writeStandbyOverride(context, { slotName: mySlotName(context, cluster) });
}

/** Override file and application of a copy that needs no recovery, on a server that is started for it. */
export async function finishConfiguration(context: InstanceContext, cluster: Cluster): Promise<void> {
  await writeStandbyOverride(context, { slotName: mySlotName(context, cluster) });
  if (!applicationDatabase(cluster)) return;
  await withTemporaryServer(context, () => ensureApplication(context, cluster));
}

/**
 * A WAL record may ask for higher limits than those in the restored control file; PostgreSQL then waits or stops. By that time
 * the control file tells the new values, so recovery goes on from where it was with them.
 */
async function recover(context: InstanceContext, cluster: Cluster, configuration: string): Promise<void> {
  let applied = "";
  for (;;) {
    const raised = await neededLimits(context, cluster);
    applied = JSON.stringify(raised);
    await writeJobConfiguration(context, cluster, { archive_command: "false", ...raised });
    await appendRecoverySettings(context, cluster, configuration);
    const outcome = await recoverOnce(context, cluster);
    if (outcome.kind === "promoted") return;
    if (JSON.stringify(await neededLimits(context, cluster)) === applied) throw outcome.error;
    context.logger.info("Recovery needs higher limits and goes on with them", { reason: outcome.error.message });
  }
}

async function neededLimits(context: InstanceContext, cluster: Cluster): Promise<Record<string, string>> {
  const settings = buildSettings(cluster, { major: await context.data.major(), mode: "restore" });
  return raiseHotStandbyValues(settings, await context.data.control());
}

async function appendRecoverySettings(
  context: InstanceContext,
  cluster: Cluster,
  configuration: string,
): Promise<void> {
  const { files, paths, settings } = context;
  const target = formatSettings(recoveryTargetSettings(cluster.spec.bootstrap?.recovery?.recoveryTarget));
  const own = (await files.read(paths.customConf)) ?? "";
  const text = `${own}${relocate(settings, configuration).trimEnd()}\n${target}`;
  await files.writeAtomic(paths.customConf, text, 0o600);
  context.logger.info("Generated recovery configuration", { configuration: configuration.trim(), target });
}

type Outcome = { kind: "promoted" } | { kind: "stopped"; error: Error };

/** The application is seen to on the same server: stopping one costs seconds, in which it tries to archive. */
async function recoverOnce(context: InstanceContext, cluster: Cluster): Promise<Outcome> {
  const work = async (server: { pid: number | undefined }) => {
    const outcome = await waitForPromotion(context, server);
    if (outcome.kind === "promoted") await ensureApplication(context, cluster);
    return outcome;
  };
  try {
    return await withTemporaryServer(context, work, { startLimitMs: Number.POSITIVE_INFINITY });
  } catch (error) {
    if (error instanceof TemporaryServerError) return { kind: "stopped", error: unfinished("PostgreSQL stopped") };
    throw error;
  }
}

function unfinished(what: string): Error {
  return new Error(
    `${what} before recovery was done; its own messages are above. Most often the archive ends before the recovery target, ` +
      "or the target lies before the end of the base backup",
  );
}

const shortestPollMs = 200;
const longestPollMs = 5_000;

async function waitForPromotion(context: InstanceContext, server: { pid: number | undefined }): Promise<Outcome> {
  context.logger.info("Waiting for the recovery to end");
  for (let pauseMs = shortestPollMs; ; pauseMs = Math.min(longestPollMs, pauseMs * 1.5)) {
    if (server.pid === undefined) return { kind: "stopped", error: unfinished("PostgreSQL stopped") };
    const state = await readState(context).catch((error: unknown) => {
      context.logger.debug("Could not ask how far the recovery is", { error });
      return "unknown";
    });
    if (state === "promoted") return { kind: "promoted" };
    if (state === "paused") return { kind: "stopped", error: unfinished("PostgreSQL paused") };
    await context.clock.sleep(pauseMs);
  }
}

async function readState(context: InstanceContext): Promise<"promoted" | "paused" | "recovering"> {
  const session = await connectLocally(context, "postgres");
  try {
    const [row] = await session.query(
      `SELECT pg_is_in_recovery() AS recovering,
              CASE WHEN pg_is_in_recovery() THEN pg_is_wal_replay_paused() ELSE false END AS paused`,
    );
    if (row?.["recovering"] === false) return "promoted";
    return row?.["paused"] === true ? "paused" : "recovering";
  } finally {
    await session.close();
  }
}
