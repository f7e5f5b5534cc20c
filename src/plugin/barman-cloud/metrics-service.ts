import type { Cluster } from "../../api/generated/cluster.ts";
import type { ObjectStore } from "../../api/generated/objectstore.ts";
import { resources } from "../../kube/resources.ts";
import type { PluginMetric } from "../../ports/plugin.ts";
import type { MetricsService } from "../framework/services.ts";
import type { CachedReader } from "./cached-reader.ts";
import { readClusterStores } from "./cluster-stores.ts";

type Window = NonNullable<NonNullable<ObjectStore["status"]>["serverRecoveryWindow"]>[string];

const prefix = "barman_cloud_cloudnative_pg_io";

const gauges: readonly { name: string; help: string; field: keyof Window }[] = [
  {
    name: `${prefix}_first_recoverability_point`,
    help: "Earliest time that can be restored, as seconds since the epoch; 0 when there is none",
    field: "firstRecoverabilityPoint",
  },
  {
    name: `${prefix}_last_available_backup_timestamp`,
    help: "End of the newest backup, as seconds since the epoch; 0 when there is none",
    field: "lastSuccessfulBackupTime",
  },
  {
    name: `${prefix}_last_failed_backup_timestamp`,
    help: "When a backup last failed, as seconds since the epoch; 0 when none did",
    field: "lastFailedBackupTime",
  },
];

/** Metrics of a cluster's own archive, from the status of its ObjectStore. */
export function createMetricsService(reader: CachedReader, seen?: (cluster: Cluster) => void): MetricsService {
  return {
    define: () =>
      gauges.map(
        ({ name, help }): PluginMetric => ({ name, help, type: "gauge", variableLabels: [], constLabels: {} }),
      ),
    async collect(cluster) {
      seen?.(cluster);
      const { own, namespace } = readClusterStores(cluster);
      const store = own && (await reader.get(resources.objectStores, { namespace, name: own.objectStore }));
      const window = own && store?.status?.serverRecoveryWindow?.[own.serverName];
      return gauges.map(({ name, field }) => ({ name, value: toSeconds(window?.[field]), variableLabels: [] }));
    },
  };
}

function toSeconds(time: string | undefined): number {
  const ms = time === undefined ? Number.NaN : Date.parse(time);
  return Number.isNaN(ms) ? 0 : Math.floor(ms / 1000);
}
