import { roles } from "./constants.ts";
import type { Cluster } from "./generated/cluster.ts";
import { annotations } from "./labels.ts";
import { childNames } from "./names.ts";

/** Name of a cluster; every object read from the API server has one. */
export function clusterName(cluster: Cluster): string {
  return cluster.metadata.name ?? "";
}

/** Namespace of a cluster; empty before it is known (at synth). */
export function clusterNamespace(cluster: Cluster): string {
  return cluster.metadata.namespace ?? "";
}

/** Names of the Secrets that a cluster uses, the user's own where the spec names them. */
export function secretNames(cluster: Cluster) {
  const names = childNames(clusterName(cluster));
  const certificates = cluster.spec.certificates;
  return {
    serverCa: certificates?.serverCASecret || names.ca,
    serverTls: certificates?.serverTLSSecret || names.server,
    clientCa: certificates?.clientCASecret || names.ca,
    replicationTls: certificates?.replicationTLSSecret || names.replication,
    superuser: cluster.spec.superuserSecret?.name || names.superuser,
    app: activeBootstrap(cluster)?.secret?.name || names.app,
    pooler: names.pooler,
    pull: names.pull,
  };
}

type Bootstrap = NonNullable<Cluster["spec"]["bootstrap"]>;

/** The bootstrap section in use, seen only as what all of them share. */
export function activeBootstrap(
  cluster: Cluster,
): Pick<NonNullable<Bootstrap["initdb"]>, "database" | "owner" | "secret"> | undefined {
  const bootstrap = cluster.spec.bootstrap;
  return bootstrap?.recovery ?? bootstrap?.pg_basebackup ?? bootstrap?.initdb;
}

/** The application database and its owner; `undefined` when the bootstrap makes none. */
export function applicationDatabase(cluster: Cluster): { database: string; owner: string } | undefined {
  const section = activeBootstrap(cluster);
  if (!section?.database || !section.owner) return undefined;
  return { database: section.database, owner: section.owner };
}

/** Whether the cluster follows another one instead of taking writes of its own. */
export function isReplicaCluster(cluster: Cluster): boolean {
  const replica = cluster.spec.replica;
  if (!replica) return false;
  if (replica.enabled !== undefined) return replica.enabled;
  return (replica.self || clusterName(cluster)) !== (replica.primary ?? "");
}

/** Whether the user has switched WAL archiving off. */
export function isArchivingOff(cluster: Cluster): boolean {
  return cluster.metadata.annotations?.[annotations.skipWalArchiving] === "enabled";
}

/** `archive_mode` as the cluster's role and annotations decide it. */
export function archiveMode(cluster: Cluster): "on" | "off" | "always" {
  if (isArchivingOff(cluster)) return "off";
  return isReplicaCluster(cluster) ? "always" : "on";
}

/** The promotion token that the cluster was given and has not been promoted with yet. */
export function pendingPromotionToken(cluster: Cluster): string | undefined {
  const token = cluster.spec.replica?.promotionToken;
  if (!token || isReplicaCluster(cluster) || token === cluster.status?.lastPromotionToken) return undefined;
  return token;
}

/** Whether the designated primary takes WAL from `spec.replica.source`: up to the point of a token also when it is to be promoted. */
export function followsSource(cluster: Cluster): boolean {
  return isReplicaCluster(cluster) || pendingPromotionToken(cluster) !== undefined;
}

/** Whether the user declared node maintenance. */
export function isMaintenanceInProgress(cluster: Cluster): boolean {
  return cluster.spec.nodeMaintenanceWindow?.inProgress ?? false;
}

/** Whether instances wait for their volumes during maintenance instead of being cloned elsewhere. */
export function reusesPvc(cluster: Cluster): boolean {
  return cluster.spec.nodeMaintenanceWindow?.reusePVC ?? true;
}

/** Names of the plugins that the cluster and its external clusters use, sorted and unique. */
export function enabledPlugins(cluster: Cluster): string[] {
  const names = new Set<string>();
  for (const plugin of cluster.spec.plugins ?? []) if (plugin.enabled ?? true) names.add(plugin.name);
  for (const { plugin } of cluster.spec.externalClusters ?? [])
    if (plugin && (plugin.enabled ?? true)) names.add(plugin.name);
  return [...names].sort();
}

/**
 * Name of the enabled plugin that archives WAL or may want to: what a plugin does is told by the plugin, so until it was asked
 * none may be taken for one that does not archive.
 */
export function walArchiverPlugin(cluster: Cluster): string | undefined {
  const enabled = cluster.spec.plugins?.filter((plugin) => plugin.enabled ?? true) ?? [];
  return (enabled.find((plugin) => plugin.isWALArchiver) ?? enabled[0])?.name;
}

/** Owner of a tablespace that names none: the application owner, else the superuser. */
export function defaultTablespaceOwner(cluster: Cluster): string {
  return applicationDatabase(cluster)?.owner ?? roles.superuser;
}

/** Name of the ServiceAccount that instances run under. */
export function serviceAccountName(cluster: Cluster): string {
  return cluster.spec.serviceAccountName || clusterName(cluster);
}

/** Whether the default monitoring queries are on. */
export function usesDefaultQueries(cluster: Cluster): boolean {
  return !(cluster.spec.monitoring?.disableDefaultQueries ?? false);
}
