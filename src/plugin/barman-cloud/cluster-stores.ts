// What a Cluster says about this plugin: which ObjectStores it names, and under which server name in each.
import { clusterName, clusterNamespace, isReplicaCluster } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { readPluginConfiguration } from "../framework/configuration.ts";
import { pluginName } from "./identity.ts";

/** One archive: an ObjectStore of the Cluster's namespace and the server's folder in it. */
export interface StoreReference {
  objectStore: string;
  serverName: string;
}

/** The archives of a Cluster by the part they play. */
export interface ClusterStores {
  namespace: string;
  /** Where the cluster archives to. */
  own: StoreReference | undefined;
  /** What the cluster is bootstrapped from. */
  recovery: StoreReference | undefined;
  /** What a replica cluster follows. */
  replicaSource: StoreReference | undefined;
}

/**
 * Reads the archives of a Cluster. Compatible on purpose: the own store is that of the entry even when it is disabled, the
 * server's name is the Cluster's unless a parameter says otherwise, for external clusters too. An empty name is none.
 */
export function readClusterStores(cluster: Cluster): ClusterStores {
  const own = readPluginConfiguration(cluster, pluginName);
  const serverName = own.enabled ? own.parameters["serverName"] : undefined;
  return {
    namespace: clusterNamespace(cluster),
    own: reference(cluster, { barmanObjectName: own.parameters["barmanObjectName"], serverName }),
    recovery: external(cluster, cluster.spec.bootstrap?.recovery?.source),
    replicaSource: external(cluster, cluster.spec.replica?.source),
  };
}

/** Names of the ObjectStores, each once, in the order own, recovery, replica source. */
export function storeNames({ own, recovery, replicaSource }: ClusterStores): string[] {
  return [...new Set([own, recovery, replicaSource].flatMap((store) => (store ? [store.objectStore] : [])))];
}

/** Why a Cluster that uses the plugin names no store of its own; null when it does, or does not use the plugin. */
export function checkOwnStore(cluster: Cluster): string | null {
  const { index, enabled, parameters } = readPluginConfiguration(cluster, pluginName);
  if (index < 0 || !enabled || parameters["barmanObjectName"]) return null;
  return `spec.plugins[${index}].parameters has no barmanObjectName: name an ObjectStore of namespace ${clusterNamespace(cluster)}`;
}

/** Why an external cluster of this plugin cannot be read from; null when nothing is amiss. */
export function checkExternalStore(cluster: Cluster, name: string | undefined): string | null {
  const entry = cluster.spec.externalClusters?.find((candidate) => candidate.name === name);
  if (entry?.plugin?.name !== pluginName || entry.plugin.parameters?.["barmanObjectName"]) return null;
  const given = Object.keys(entry.plugin.parameters ?? {});
  const instead = given.length > 0 ? `; given are ${given.join(", ")}` : "";
  return `external cluster ${name}: plugin.parameters has no barmanObjectName${instead}`;
}

/** Why a replica cluster must not archive: its WAL would mix with that of the cluster it follows. Null when nothing is amiss. */
export function checkReplicaArchive(cluster: Cluster): string | null {
  const { own, replicaSource } = readClusterStores(cluster);
  if (!isReplicaCluster(cluster) || !isSameArchive(own, replicaSource)) return null;
  return `spec.replica.source is the archive that the cluster archives into itself: ${describe(own)}; give one of them another serverName or ObjectStore`;
}

/** Why a cluster must not recover: it would archive into what it recovers from. Null when nothing is amiss. */
export function checkRecoveryArchive(cluster: Cluster): string | null {
  const { own, recovery } = readClusterStores(cluster);
  if (!isSameArchive(own, recovery)) return null;
  return `spec.bootstrap.recovery.source is the archive that the cluster would archive into itself: ${describe(own)}; give one of them another serverName or ObjectStore`;
}

function isSameArchive(one: StoreReference | undefined, other: StoreReference | undefined): boolean {
  return one !== undefined && one.objectStore === other?.objectStore && one.serverName === other.serverName;
}

function describe(store: StoreReference | undefined): string {
  return `server ${store?.serverName} of ObjectStore ${store?.objectStore}`;
}

/** What a user had better write down; each a sentence for the log. */
export function warnAboutStores(cluster: Cluster): string[] {
  return [...warnOfDisabled(cluster), ...warnOfNames(cluster)];
}

/** As in the original such an entry still has its sidecar, as long as something else brings the plugin to the cluster. */
function warnOfDisabled(cluster: Cluster): string[] {
  const { index, enabled, parameters } = readPluginConfiguration(cluster, pluginName);
  const objectStore = parameters["barmanObjectName"];
  if (index < 0 || enabled || !objectStore) return [];
  return [
    `spec.plugins[${index}] is disabled and its ObjectStore ${objectStore} is used all the same: remove the entry`,
  ];
}

function warnOfNames(cluster: Cluster): string[] {
  const source = (name: string | undefined) => cluster.spec.externalClusters?.find((entry) => entry.name === name);
  const sources = new Set([cluster.spec.bootstrap?.recovery?.source, cluster.spec.replica?.source]);
  return [...sources].flatMap((name) => {
    const plugin = source(name)?.plugin;
    if (plugin?.name !== pluginName || plugin.parameters?.["serverName"]) return [];
    return [
      `external cluster ${name} names no serverName, so ${clusterName(cluster)} is read; write the name of the cluster that archived there`,
    ];
  });
}

function external(cluster: Cluster, name: string | undefined): StoreReference | undefined {
  const entry = name ? cluster.spec.externalClusters?.find((candidate) => candidate.name === name) : undefined;
  if (entry?.plugin?.name !== pluginName) return undefined;
  return reference(cluster, entry.plugin.parameters ?? {});
}

function reference(
  cluster: Cluster,
  parameters: { barmanObjectName?: string | undefined; serverName?: string | undefined } & Record<
    string,
    string | undefined
  >,
): StoreReference | undefined {
  const objectStore = parameters["barmanObjectName"];
  if (!objectStore) return undefined;
  return { objectStore, serverName: parameters["serverName"] || clusterName(cluster) };
}
