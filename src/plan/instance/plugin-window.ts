import type { Backup } from "../../api/generated/backup.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { parseWalSegment } from "../../postgres/wal-name.ts";
import type { MethodWindow } from "./backup.ts";

/** Names by which the barman-cloud plugin measures what can be restored, in seconds since the epoch; 0 = nothing. */
const first = "barman_cloud_cloudnative_pg_io_first_recoverability_point";
const last = "barman_cloud_cloudnative_pg_io_last_available_backup_timestamp";

/** What the archive of a plugin can restore, from its own metrics; `undefined` when it does not measure it. */
export function readPluginWindow(samples: readonly { name: string; value: number }[]): MethodWindow | undefined {
  const seconds = (name: string) => samples.find((sample) => sample.name === name)?.value;
  const [firstSeconds, lastSeconds] = [seconds(first), seconds(last)];
  if (firstSeconds === undefined || lastSeconds === undefined) return undefined;
  const ms = (value: number) => (value > 0 ? value * 1000 : undefined);
  return {
    method: "plugin",
    firstRecoverabilityPointMs: ms(firstSeconds),
    lastSuccessfulBackupMs: ms(lastSeconds),
  };
}

/**
 * The first segment that the oldest backup of the cluster needs, by the Backups that a plugin has completed; `undefined` when there are
 * none, or when one of them does not say what it needs.
 */
export function firstRequiredWal(cluster: Cluster, plugin: string, backups: readonly Backup[]): string | undefined {
  const own = backups.filter(
    ({ spec, status }) =>
      spec.cluster.name === cluster.metadata.name &&
      spec.pluginConfiguration?.name === plugin &&
      status?.phase === "completed" &&
      // One of a cluster of the same name that is gone says nothing about this one.
      (status.pluginMetadata?.["clusterUID"] ?? cluster.metadata.uid) === cluster.metadata.uid,
  );
  const begins = own.map(({ status }) => status?.beginWal ?? "");
  if (begins.some((name) => !parseWalSegment(name))) return undefined;
  // Positions first: the backup of an older timeline may lie later.
  const order = (name: string) => name.slice(8) + name.slice(0, 8);
  return begins.sort((a, b) => (order(a) < order(b) ? -1 : 1))[0];
}
