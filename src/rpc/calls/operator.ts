import type { Plugin, PluginCallOptions, PluginValidationError } from "../../ports/plugin.ts";
import { encodeCluster } from "../wire/document.ts";
import { applyPatchOf } from "./lifecycle.ts";

/** Passes the Cluster through all plugins that mutate it, each seeing what the one before it made. */
export async function mutateCluster<T extends object>(
  plugins: readonly Plugin[],
  cluster: T,
  options?: PluginCallOptions,
): Promise<T> {
  let current = cluster;
  for (const plugin of offering(plugins, "TYPE_MUTATE_CLUSTER")) {
    // The whole object, not the trimmed text: the patch must fit what the API server admits.
    const text = Buffer.from(JSON.stringify(current));
    current = applyPatchOf(
      plugin,
      "Operator.MutateCluster",
      current,
      await plugin.operator.mutateCluster(text, options),
    );
  }
  return current;
}

/** Complaints of all plugins about a new Cluster. */
export async function validateClusterCreate(
  plugins: readonly Plugin[],
  cluster: object,
  options?: PluginCallOptions,
): Promise<PluginValidationError[]> {
  const errors: PluginValidationError[] = [];
  for (const plugin of offering(plugins, "TYPE_VALIDATE_CLUSTER_CREATE")) {
    errors.push(...(await plugin.operator.validateClusterCreate(cluster, options)));
  }
  return errors;
}

/** Complaints of all plugins about a change of a Cluster. */
export async function validateClusterChange(
  plugins: readonly Plugin[],
  clusters: { before: object; after: object },
  options?: PluginCallOptions,
): Promise<PluginValidationError[]> {
  const errors: PluginValidationError[] = [];
  for (const plugin of offering(plugins, "TYPE_VALIDATE_CLUSTER_CHANGE")) {
    errors.push(...(await plugin.operator.validateClusterChange(clusters, options)));
  }
  return errors;
}

/** JSON text of the status of each plugin that reports one, by plugin name; a plugin without news is absent. */
export async function collectPluginStatuses(
  plugins: readonly Plugin[],
  cluster: object,
  options?: PluginCallOptions,
): Promise<ReadonlyMap<string, string>> {
  const statuses = new Map<string, string>();
  const text = encodeCluster(cluster);
  for (const plugin of offering(plugins, "TYPE_SET_STATUS_IN_CLUSTER")) {
    const status = await plugin.operator.setStatusInCluster(text, options);
    if (status !== "") statuses.set(plugin.name, status);
  }
  return statuses;
}

/** Tells each plugin that offers it that the Cluster does not use it any more. */
export async function deregisterPlugins(
  plugins: readonly Plugin[],
  cluster: object,
  options?: PluginCallOptions,
): Promise<void> {
  for (const plugin of offering(plugins, "TYPE_DEREGISTER")) await plugin.operator.deregister(cluster, options);
}

function offering(plugins: readonly Plugin[], capability: string): readonly Plugin[] {
  return plugins.filter(({ capabilities }) => capabilities.operator.includes(capability));
}
