// `instance restoresnapshot`: a data folder that came as a snapshot of a volume (reference: instance manager §9.6).
import type { Cluster } from "../../api/generated/cluster.ts";
import { mySlotName, writeStandbyOverride } from "../configuration-files.ts";
import type { InstanceContext } from "../instance-context.ts";
import { createPodPlugins } from "../plugins/pod-plugins.ts";
import { moveWalToVolume } from "../reconcile/wal-volume.ts";
import { finishRecovery } from "./finish-recovery.ts";
import { askingConfiguration, recoverySourceOf, withRecoveryWal } from "./recovery-wal.ts";

export interface SnapshotOptions {
  /** For a new replica of a cluster that runs. */
  immediate: boolean;
  /** Base64, as the snapshot's annotations carry them. */
  backupLabel: string | undefined;
  tablespaceMap: string | undefined;
}

/** What a copy must not take over, as PostgreSQL's own base backups leave it out. */
const excludedFiles =
  /^(core\..*|pgsql_tmp.*|postgresql\.auto\.conf\.tmp|current_logfiles\.tmp|pg_internal\.init|postmaster\.(pid|opts)|recovery\.(conf|signal)|standby\.signal)$/;
const emptiedFolders = [
  "log",
  "pg_log",
  "pg_dynshmem",
  "pg_notify",
  "pg_replslot",
  "pg_serial",
  "pg_snapshots",
  "pg_stat_tmp",
  "pg_subtrans",
];

/** Makes the folder one of this cluster: a standby of it, or its first primary. */
export async function restoreSnapshot(
  context: InstanceContext,
  cluster: Cluster,
  options: SnapshotOptions,
): Promise<void> {
  const { files, paths } = context;
  if (!(await files.exists(paths.pgVersion))) {
    throw new Error(`${paths.pgData} holds no PostgreSQL data: check what the volume was made from`);
  }
  await removeLeftovers(context);
  if (options.immediate) {
    await writeStandbyOverride(context, { slotName: mySlotName(context, cluster) });
    await files.writeAtomic(paths.standbySignal, "", 0o600);
    return;
  }
  if (!cluster.spec.bootstrap?.recovery) throw new Error("spec.bootstrap.recovery is not set");
  const source = recoverySourceOf(cluster);
  // Without an archive the folder starts as it is, by the WAL it came with.
  if (source.kind === "none") return;
  await writeDecoded(context, "backup_label", options.backupLabel);
  await writeDecoded(context, "tablespace_map", options.tablespaceMap);
  if (context.settings.pgWal !== undefined) await moveWalToVolume(context);
  const plugins = createPodPlugins({ ...context, environment: context.settings.environment });
  try {
    await withRecoveryWal(context, cluster, source, plugins, () =>
      finishRecovery(context, cluster, { configuration: askingConfiguration, environment: {} }),
    );
  } finally {
    await plugins.close();
  }
}

async function removeLeftovers({ files, paths, logger }: InstanceContext): Promise<void> {
  for (const name of await files.list(paths.pgData)) {
    if (!excludedFiles.test(name)) continue;
    logger.info("Removing a file that belongs to the server that was copied", { file: name });
    await files.remove(`${paths.pgData}/${name}`, { recursive: true });
  }
  for (const folder of emptiedFolders) {
    const path = `${paths.pgData}/${folder}`;
    if (!(await files.exists(path))) continue;
    for (const name of await files.list(path)) await files.remove(`${path}/${name}`, { recursive: true });
  }
}

async function writeDecoded({ files, paths }: InstanceContext, name: string, text: string | undefined): Promise<void> {
  if (!text) return;
  await files.writeAtomic(`${paths.pgData}/${name}`, Buffer.from(text, "base64"), 0o600);
}
