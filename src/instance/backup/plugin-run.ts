import { isArchivingOff } from "../../api/cluster-facts.ts";
import type { Backup } from "../../api/generated/backup.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import type { CompletedBackup } from "../../plan/instance/backup.ts";
import { chooseArchiver } from "../../plan/instance/wal-sources.ts";
import type { PluginBackupResult } from "../../ports/plugin.ts";
import type { InstanceContext } from "../instance-context.ts";
import type { PodPlugins } from "../plugins/pod-plugins.ts";
import { withType } from "../wal/archive-file.ts";
import { waitForArchivedEnd } from "./archiving-ready.ts";

export interface PluginBackupOptions {
  cluster: Cluster;
  backup: Backup;
  plugin: string;
  parameters: Record<string, string>;
  signal: AbortSignal;
}

/** Has a plugin take the backup; resolves when the archive also holds the WAL that a restore of it needs. */
export async function runPluginBackup(
  context: InstanceContext,
  plugins: PodPlugins,
  options: PluginBackupOptions,
): Promise<CompletedBackup> {
  const { cluster, plugin: name, parameters, signal } = options;
  const present = await plugins.names();
  if (!present.includes(name)) throw new Error(`requested plugin is not available: ${name}`);
  const result = await plugins.use(
    [name],
    ({ plugins: [plugin] }) => {
      const capabilities = plugin?.capabilities;
      if (!plugin || !capabilities?.services.includes("TYPE_BACKUP_SERVICE")) {
        throw new Error(`requested plugin does not take backups: ${name}; name one with a backup service`);
      }
      if (!capabilities.backup.includes("TYPE_BACKUP")) {
        throw new Error(`the backup service of plugin ${name} takes no backups (TYPE_BACKUP); use a version that does`);
      }
      const backup = { ...options.backup, apiVersion: "postgresql.cnpg.io/v1", kind: "Backup" };
      return plugin.backup.backup({ cluster: withType(cluster), backup, parameters }, { deadlineMs: null, signal });
    },
    { signal },
  );
  // A plugin that stores the WAL with its backup, or takes it from a stopped server, leaves nothing to wait for.
  const isArchived = chooseArchiver(cluster).kind !== "none" && !isArchivingOff(cluster);
  if (result.online && result.endWal !== "" && isArchived) {
    await waitForArchivedEnd(context, result.endWal, signal);
  }
  return completed(result);
}

function completed(result: PluginBackupResult): CompletedBackup {
  const { backupId, backupName, beginWal, endWal, beginLsn, endLsn } = result;
  const { backupLabelFile, tablespaceMapFile, online, metadata } = result;
  return {
    backupId,
    backupName,
    startedAtMs: result.startedAt,
    stoppedAtMs: result.stoppedAt,
    beginWal,
    endWal,
    beginLsn,
    endLsn,
    backupLabelFile,
    tablespaceMapFile,
    online,
    metadata,
  };
}
