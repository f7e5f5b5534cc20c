import {
  type Plugin,
  type PluginCallOptions,
  PluginError,
  type PluginRestoreRequest,
  type PluginRestoreResult,
} from "../../ports/plugin.ts";

/** Lets the first plugin that restores fill PGDATA; having none is an error, never an empty success. */
export async function restoreByPlugin(
  plugins: readonly Plugin[],
  request: PluginRestoreRequest,
  options?: PluginCallOptions,
): Promise<PluginRestoreResult> {
  const operation = "RestoreJobHooks.Restore";
  const plugin = plugins.find(({ capabilities }) => capabilities.restoreJob.includes("KIND_RESTORE"));
  if (plugin) return plugin.restoreJob.restore(request, options);
  const names = plugins.map(({ name }) => name).join(", ");
  throw new PluginError(
    `no plugin restores base backups (reachable: ${names || "none"}); check the plugin of the recovery source`,
    { plugin: names, operation, kind: "refused" },
  );
}
