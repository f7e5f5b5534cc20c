// `instance restore`: a new cluster out of an archive, by a plugin or by ourselves (reference: instance manager §9.5).

import type { Backup } from "../../api/generated/backup.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { annotations } from "../../api/labels.ts";
import { resources } from "../../kube/resources.ts";
import { describeEndpoint, type InTreeArchive } from "../../plan/instance/wal-sources.ts";
import { isKubeError } from "../../ports/kube-api.ts";
import type { InstanceContext } from "../instance-context.ts";
import { createPodPlugins, type PodPlugins } from "../plugins/pod-plugins.ts";
import { withType } from "../wal/archive-file.ts";
import type { InTreeWal } from "../wal/wal-sources.ts";
import { finishRecovery, type RecoveryPlan } from "./finish-recovery.ts";
import { askingConfiguration, type RecoverySource, recoverySourceOf, withRecoveryWal } from "./recovery-wal.ts";
import { clearTarget, markCopy, unmarkCopy } from "./target-folder.ts";

/** Longest wait for the socket of a sidecar that is only starting. */
const pluginLimitMs = 60_000;

/** Restores a base backup, recovers up to the target and leaves a primary, or a standby of the source. */
export async function restoreInstance(context: InstanceContext, cluster: Cluster): Promise<void> {
  const backup = await readBackup(context, cluster);
  const source: RecoverySource = backup
    ? { kind: "archive", archive: archiveOfBackup(cluster, backup) }
    : recoverySourceOf(cluster);
  if (source.kind === "none") {
    throw new Error("spec.bootstrap.recovery names nothing to restore: set source or backup");
  }
  const plugins = createPodPlugins({ ...context, environment: context.settings.environment });
  try {
    await clearTarget(context);
    await markCopy(context, "recovery");
    await withRecoveryWal(context, cluster, source, plugins, async (wal) => {
      const plan =
        source.kind === "plugin"
          ? await restoreByThePlugin(context, cluster, source.plugin, plugins)
          : await restoreInTree(context, cluster, source.archive, backup?.status?.backupId, await wal.inTree());
      await finishRecovery(context, cluster, plan);
    });
    await unmarkCopy(context);
  } finally {
    await plugins.close();
  }
  context.logger.info("Restore completed");
}

async function readBackup(context: InstanceContext, cluster: Cluster): Promise<Backup | undefined> {
  const name = cluster.spec.bootstrap?.recovery?.backup?.name;
  if (!name) return undefined;
  const { namespace } = context.settings;
  try {
    return await context.kube.get(resources.backups, { namespace, name }, { timeoutMs: 10_000 });
  } catch (error) {
    if (isKubeError(error, "notFound")) throw new Error(`Backup object "${namespace}/${name}" is missing`);
    throw error;
  }
}

/** A Backup carries everything that is needed to read it, whether or not its cluster still exists. */
function archiveOfBackup(cluster: Cluster, { metadata, status = {} }: Backup): InTreeArchive {
  const field = `status of Backup ${metadata.name ?? ""}`;
  const { destinationPath, serverName, backupId } = status;
  for (const [key, value] of Object.entries({ destinationPath, serverName, backupId })) {
    if (!value) throw new Error(`${field} has no ${key}: it is no completed backup of an object store`);
  }
  const { endpointURL, s3Credentials, azureCredentials, googleCredentials } = status;
  const endpointCA = cluster.spec.bootstrap?.recovery?.backup?.endpointCA ?? status.endpointCA;
  const configuration: InTreeArchive["configuration"] = {
    destinationPath: destinationPath ?? "",
    ...(endpointURL ? { endpointURL } : {}),
    ...(endpointCA ? { endpointCA } : {}),
    ...(s3Credentials ? { s3Credentials } : {}),
    ...(azureCredentials ? { azureCredentials } : {}),
    ...(googleCredentials ? { googleCredentials } : {}),
    ...describeEndpoint(cluster, endpointURL),
  };
  return { configuration, serverName: serverName ?? "", field };
}

async function restoreInTree(
  context: InstanceContext,
  cluster: Cluster,
  archive: InTreeArchive,
  backupId: string | undefined,
  inTree: InTreeWal,
): Promise<RecoveryPlan> {
  const { restoreFromArchive } = await import("./restore-in-tree.ts");
  await restoreFromArchive(context, cluster, archive, backupId, inTree.places);
  return { configuration: askingConfiguration, environment: {} };
}

async function restoreByThePlugin(
  context: InstanceContext,
  cluster: Cluster,
  name: string,
  plugins: PodPlugins,
): Promise<RecoveryPlan> {
  const { clock, logger } = context;
  const endMs = clock.monotonicMs() + pluginLimitMs;
  while (!(await plugins.names()).includes(name)) {
    if (clock.monotonicMs() > endMs) {
      throw new Error(`plugin ${name} has no socket in this pod: check that it is installed and serves this cluster`);
    }
    await clock.sleep(250);
  }
  const { restoreByPlugin } = await import("../../rpc/calls/restore-job.ts");
  logger.info("Restoring through the plugin", { plugin: name });
  const checkEmptyWalArchive = cluster.metadata.annotations?.[annotations.skipEmptyWalArchiveCheck] !== "enabled";
  const answer = await plugins.use(
    [name],
    ({ plugins: loaded }) => restoreByPlugin(loaded, { cluster: withType(cluster), checkEmptyWalArchive }),
    { budgetMs: pluginLimitMs },
  );
  if ((await context.data.controlFile()) !== "filled") {
    throw new Error(`plugin ${name} says that it restored the backup, but ${context.paths.controlFile} is not there`);
  }
  return { configuration: answer.restoreConfig, environment: parseEnvironment(answer.envs) };
}

function parseEnvironment(items: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    items.flatMap((item) => {
      const equals = item.indexOf("=");
      return equals > 0 ? [[item.slice(0, equals), item.slice(equals + 1)] as const] : [];
    }),
  );
}
