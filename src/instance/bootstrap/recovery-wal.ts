// Answers the WAL requests of a recovery's PostgreSQL: the Job has no resident manager that would.
import { isReplicaCluster } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import type { InTreeArchive } from "../../plan/instance/wal-sources.ts";
import { formatSettings } from "../../postgres/configuration.ts";
import { restoreCommand } from "../../postgres/override-conf.ts";
import type { InstanceContext } from "../instance-context.ts";
import type { PodPlugins } from "../plugins/pod-plugins.ts";
import { createInstanceWal, type InstanceWal } from "../wal/create-wal.ts";

/** Where a recovery has its WAL from. */
export type RecoverySource =
  | { kind: "archive"; archive: InTreeArchive }
  | { kind: "plugin"; plugin: string }
  /** From nowhere: what lies in the restored folder has to do. */
  | { kind: "none" };

/** Lines that make PostgreSQL ask for WAL, and promote at the target. */
export const askingConfiguration = formatSettings(
  new Map([
    ["recovery_target_action", "promote"],
    ["restore_command", restoreCommand],
  ]),
);

/** Runs work while WAL requests are answered from the source. */
export async function withRecoveryWal<T>(
  context: InstanceContext,
  cluster: Cluster,
  source: RecoverySource,
  plugins: PodPlugins,
  work: (wal: InstanceWal) => Promise<T>,
): Promise<T> {
  const wal = createInstanceWal(
    // Only the source is asked: a plugin that is to archive the new cluster's WAL knows nothing of the old one's.
    { ...context, state: { ...context.state, cluster: onlySource(cluster, source) } },
    {
      plugins,
      status: { setCondition: async () => undefined },
      restoreSource: () =>
        source.kind === "archive"
          ? { kind: "archive", archive: source.archive, streamingAvailable: false }
          : { kind: "none" },
    },
  );
  await wal.server.listen(context.files, context.paths.walSocket);
  try {
    return await work(wal);
  } finally {
    await wal.close();
  }
}

function onlySource(cluster: Cluster, source: RecoverySource): Cluster {
  const isSource = (name: string) => source.kind === "plugin" && name === source.plugin;
  return {
    ...cluster,
    spec: {
      ...cluster.spec,
      plugins: (cluster.spec.plugins ?? []).filter(({ name }) => isSource(name)),
      externalClusters: (cluster.spec.externalClusters ?? []).map((external) => {
        const { plugin, ...rest } = external;
        return plugin && isSource(plugin.name) ? external : rest;
      }),
    },
  };
}

/** The plugin or archive of an external cluster; a replica cluster's standby asks by itself later. */
export function recoverySourceOf(cluster: Cluster): RecoverySource {
  const name = cluster.spec.bootstrap?.recovery?.source;
  if (!name) return { kind: "none" };
  const external = cluster.spec.externalClusters?.find((it) => it.name === name);
  if (!external) {
    throw new Error(`spec.bootstrap.recovery.source "${name}" is not among spec.externalClusters; add it there`);
  }
  if (external.plugin) return { kind: "plugin", plugin: external.plugin.name };
  const configuration = external.barmanObjectStore;
  if (configuration) {
    const field = `spec.externalClusters[${name}].barmanObjectStore`;
    return { kind: "archive", archive: { configuration, serverName: configuration.serverName || name, field } };
  }
  const where = isReplicaCluster(cluster) ? "use bootstrap.pg_basebackup instead, or " : "";
  throw new Error(
    `external cluster ${name} has neither plugin nor barmanObjectStore: ${where}add one to recover from it`,
  );
}
