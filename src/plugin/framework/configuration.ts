import type { Cluster } from "../../api/generated/cluster.ts";
import type { PluginValidationError } from "../../ports/plugin.ts";

/** What a Cluster says about one plugin. */
export interface PluginConfiguration {
  /** Place in `spec.plugins`; -1 when the Cluster does not name the plugin. */
  index: number;
  enabled: boolean;
  isWalArchiver: boolean;
  parameters: Record<string, string>;
}

/** The Cluster's entry for the plugin; the last one, when there are several, as with Go plugins. */
export function readPluginConfiguration(cluster: Cluster, name: string): PluginConfiguration {
  const plugins = cluster.spec.plugins ?? [];
  const index = plugins.findLastIndex((plugin) => plugin.name === name);
  const entry = plugins[index];
  return {
    index,
    enabled: entry !== undefined && (entry.enabled ?? true),
    isWalArchiver: entry?.isWALArchiver ?? false,
    parameters: entry?.parameters ?? {},
  };
}

/** A complaint about one parameter of the plugin, at its place in the Cluster. */
export function parameterError(
  configuration: PluginConfiguration,
  parameter: string,
  message: string,
): PluginValidationError {
  const place = configuration.index < 0 ? [] : [String(configuration.index)];
  return {
    path: ["spec", "plugins", ...place, parameter],
    value: configuration.parameters[parameter] ?? "",
    message,
  };
}
