import type { Cluster } from "../../api/generated/cluster.ts";

/**
 * Plugins that serve the instances of a cluster: enabled, and known to add a sidecar; with the archiver where asked (reference:
 * CNPG-I §2.5). Sorted, since that is the order in which they are called.
 */
export function instancePlugins(cluster: Cluster, options: { withArchiver?: boolean } = {}): string[] {
  const sidecars = pluginsWith(cluster, "TYPE_INSTANCE_SIDECAR_INJECTION");
  return enabled(
    cluster,
    ({ name, isWALArchiver }) => sidecars.has(name) || Boolean(options.withArchiver && isWALArchiver),
  );
}

/** Plugins that serve the Jobs of a cluster: enabled, and known to add a sidecar to them. */
export function jobPlugins(cluster: Cluster): string[] {
  const sidecars = pluginsWith(cluster, "TYPE_INSTANCE_JOB_SIDECAR_INJECTION");
  return enabled(cluster, ({ name }) => sidecars.has(name));
}

function pluginsWith(cluster: Cluster, capability: string): ReadonlySet<string> {
  const statuses = cluster.status?.pluginStatus ?? [];
  return new Set(statuses.filter(({ capabilities }) => capabilities?.includes(capability)).map(({ name }) => name));
}

type Entry = NonNullable<Cluster["spec"]["plugins"]>[number];

function enabled(cluster: Cluster, isWanted: (plugin: Entry) => boolean): string[] {
  const entries = (cluster.spec.plugins ?? []).filter((plugin) => (plugin.enabled ?? true) && isWanted(plugin));
  return [...new Set(entries.map(({ name }) => name))].sort();
}
