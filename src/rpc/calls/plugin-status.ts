import type { Cluster } from "../../api/generated/cluster.ts";
import type { Plugin } from "../../ports/plugin.ts";

type PluginStatus = NonNullable<NonNullable<Cluster["status"]>["pluginStatus"]>[number];

/**
 * `status.pluginStatus` for the loaded plugins: capability lists hold the protocol's names, because the instances look for
 * them. A plugin's own `status` text is carried over until the plugin gives a new one.
 */
export function buildPluginStatus(
  plugins: readonly Pick<Plugin, "name" | "metadata" | "capabilities">[],
  before: readonly PluginStatus[] = [],
  reported: ReadonlyMap<string, string> = new Map(),
): PluginStatus[] {
  return plugins.map(({ name, metadata, capabilities }) => {
    const status = reported.get(name) ?? before.find((entry) => entry.name === name)?.status;
    return {
      name,
      version: metadata.version,
      ...list("capabilities", capabilities.services),
      ...list("operatorCapabilities", capabilities.operator),
      ...list("walCapabilities", capabilities.wal),
      ...list("backupCapabilities", capabilities.backup),
      ...list("restoreJobHookCapabilities", capabilities.restoreJob),
      ...(status ? { status } : {}),
    };
  });
}

/** An empty list is left out, as Go's encoder does it; else the two operators would patch each other's status for ever. */
function list(key: string, values: readonly string[]): Record<string, string[]> {
  return values.length === 0 ? {} : { [key]: [...values] };
}
