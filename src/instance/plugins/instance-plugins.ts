import type { Cluster } from "../../api/generated/cluster.ts";

/**
 * Plugins that serve the instances of a cluster: enabled, and known to add a sidecar; with the archiver where asked (reference:
 * CNPG-I §2.5). Sorted, since that is the order in which they are called.
 */
export function instancePlugins(cluster: Cluster, options: { withArchiver?: boolean } = {}): string[] {
  const sidecars = new Set(
    (cluster.status?.pluginStatus ?? [])
      .filter(({ capabilities }) => capabilities?.includes("TYPE_INSTANCE_SIDECAR_INJECTION"))
      .map(({ name }) => name),
  );
  const names = (cluster.spec.plugins ?? [])
    .filter((plugin) => plugin.enabled ?? true)
    .filter(({ name, isWALArchiver }) => sidecars.has(name) || (options.withArchiver && isWALArchiver))
    .map(({ name }) => name);
  return [...new Set(names)].sort();
}
