import type { EnrichConfigurationRequest, Plugin, PluginCallOptions } from "../../ports/plugin.ts";
import { encodeCluster } from "../wire/document.ts";

/** Passes the settings of PostgreSQL through all plugins that change them, each seeing what the one before it made. */
export async function enrichConfiguration(
  plugins: readonly Plugin[],
  request: EnrichConfigurationRequest,
  options?: PluginCallOptions,
): Promise<Record<string, string>> {
  const interested = plugins.filter(({ capabilities }) => capabilities.postgres.includes("TYPE_ENRICH_CONFIGURATION"));
  let { configs } = request;
  if (interested.length === 0) return configs;
  const cluster = encodeCluster(request.cluster);
  for (const plugin of interested) {
    const answer = await plugin.postgres.enrichConfiguration({ ...request, cluster, configs }, options);
    if (Object.keys(answer).length > 0) configs = answer;
  }
  return configs;
}
