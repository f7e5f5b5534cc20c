// Who archives and who restores the WAL of a cluster, from what the Cluster says (reference: CNPG-I §2.5, backup §6).
import { clusterName, followsSource, isReplicaCluster } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import type { WalArchiverChoice } from "./wal.ts";

type ExternalCluster = NonNullable<Cluster["spec"]["externalClusters"]>[number];

/** An object store as the Cluster itself describes it. */
export type InTreeStore = NonNullable<NonNullable<Cluster["spec"]["backup"]>["barmanObjectStore"]>;

/** An in-tree archive: where it is and the server's folder in it. */
export interface InTreeArchive {
  configuration: InTreeStore;
  serverName: string;
  /** Field of the Cluster, for messages. */
  field: string;
}

/**
 * Whether a plugin has a capability; `undefined` when that is not known. The status tells what the plugin's part beside the
 * operator can do: one that serves no WAL there may well do so by its sidecars.
 */
function hasWalCapability(cluster: Cluster, name: string, capability: string): boolean | undefined {
  const known = cluster.status?.pluginStatus?.find((entry) => entry.name === name);
  if (!known?.capabilities?.includes("TYPE_WAL_SERVICE")) return undefined;
  return (known.walCapabilities ?? []).includes(capability);
}

/** Enabled entries of `spec.plugins`. */
function enabledEntries(cluster: Cluster) {
  return (cluster.spec.plugins ?? []).filter((plugin) => plugin.enabled ?? true);
}

/** Only the archiver archives; where nobody is marked as one, a plugin that may archive is asked rather than passed over. */
export function chooseArchiver(cluster: Cluster): WalArchiverChoice {
  const entries = enabledEntries(cluster);
  const marked = entries.find((plugin) => plugin.isWALArchiver);
  if (marked) return { kind: "plugin", plugin: marked.name };
  if (cluster.spec.backup?.barmanObjectStore) return { kind: "objectStore" };
  const perhaps = entries
    .map(({ name }) => name)
    .filter((name) => hasWalCapability(cluster, name, "TYPE_ARCHIVE_WAL") !== false);
  return perhaps.length > 0 ? { kind: "perhaps", plugins: [...new Set(perhaps)].sort() } : { kind: "none" };
}

/** Plugins of which a file may be asked, sorted; `required`: without their answer nothing is known of the file. */
export function restorePlugins(cluster: Cluster): { name: string; required: boolean }[] {
  const sources = new Set([cluster.spec.replica?.source, cluster.spec.bootstrap?.recovery?.source]);
  const plugins = new Map<string, boolean>();
  const note = (name: string, isSource: boolean) => {
    const can = hasWalCapability(cluster, name, "TYPE_RESTORE_WAL");
    if (can === false) return;
    plugins.set(name, (plugins.get(name) ?? false) || isSource || can === true);
  };
  for (const plugin of enabledEntries(cluster)) note(plugin.name, plugin.isWALArchiver ?? false);
  for (const { name, plugin } of cluster.spec.externalClusters ?? []) {
    if (plugin && (plugin.enabled ?? true)) note(plugin.name, sources.has(name));
  }
  return [...plugins].map(([name, required]) => ({ name, required })).sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The archive that the cluster itself writes to. */
export function ownArchive(cluster: Cluster): InTreeArchive | undefined {
  const configuration = cluster.spec.backup?.barmanObjectStore;
  if (!configuration) return undefined;
  const serverName = configuration.serverName || clusterName(cluster);
  return { configuration, serverName, field: "spec.backup.barmanObjectStore" };
}

function archiveOf(external: ExternalCluster | undefined): InTreeArchive | undefined {
  if (!external?.barmanObjectStore) return undefined;
  return {
    configuration: external.barmanObjectStore,
    serverName: external.barmanObjectStore.serverName || external.name,
    field: `spec.externalClusters[${external.name}].barmanObjectStore`,
  };
}

/**
 * What the Cluster says of how to speak to an endpoint, for an archive there that somebody else describes: a Backup keeps where
 * its archive is, and not the additional arguments that may be needed to reach it.
 */
export function describeEndpoint(cluster: Cluster, endpointURL: string | undefined): Pick<InTreeStore, "wal" | "data"> {
  const stores = [
    cluster.spec.backup?.barmanObjectStore,
    ...(cluster.spec.externalClusters ?? []).map((it) => it.barmanObjectStore),
  ];
  const alike = stores.find((it) => it !== undefined && (it.endpointURL ?? "") === (endpointURL ?? ""));
  return { ...(alike?.wal ? { wal: alike.wal } : {}), ...(alike?.data ? { data: alike.data } : {}) };
}

/** Why a replica cluster must not archive: its WAL would mix with that of the cluster it follows. Null when nothing is amiss. */
export function checkReplicaArchive(cluster: Cluster): string | null {
  const name = cluster.spec.replica?.source;
  const [own, source] = [ownArchive(cluster), archiveOf(cluster.spec.externalClusters?.find((it) => it.name === name))];
  if (!isReplicaCluster(cluster) || !own || !source || placeOf(own) !== placeOf(source)) return null;
  return `${own.field} is the archive of spec.replica.source "${name}" too: give one of them another serverName or destinationPath`;
}

function placeOf({ configuration, serverName }: InTreeArchive): string {
  return [configuration.endpointURL ?? "", configuration.destinationPath.replace(/\/+$/, ""), serverName].join(" ");
}

export type InTreeSource =
  | { kind: "archive"; archive: InTreeArchive; streamingAvailable: boolean }
  | { kind: "none" }
  | { kind: "invalid"; reason: string };

/** The in-tree archive that a pod restores from (reference: instance manager §10.2, steps 4 and 7). */
export function chooseInTreeSource(cluster: Cluster, podName: string): InTreeSource {
  const current = cluster.status?.currentPrimary ?? "";
  const external = (name: string | undefined) => cluster.spec.externalClusters?.find((entry) => entry.name === name);
  const source = external(cluster.spec.replica?.source);
  const designated = followsSource(cluster) && current === podName;
  if (designated && !source) {
    return {
      kind: "invalid",
      reason: `spec.replica.source "${cluster.spec.replica?.source ?? ""}" is not among spec.externalClusters; add it there`,
    };
  }
  const canStream = Object.keys(source?.connectionParameters ?? {}).length > 0;
  const streamingAvailable = current !== "" && (current !== podName || (designated && canStream));
  const recovery = current === "" ? archiveOf(external(cluster.spec.bootstrap?.recovery?.source)) : undefined;
  const archive = designated ? archiveOf(source) : (recovery ?? ownArchive(cluster));
  return archive ? { kind: "archive", archive, streamingAvailable } : { kind: "none" };
}
