import type { Cluster } from "../../api/generated/cluster.ts";
import type { ConfigurationOperation } from "../../ports/plugin.ts";
import { withType } from "../wal/archive-file.ts";
import type { PodPlugins } from "./pod-plugins.ts";

const callLimitMs = 10_000;

/**
 * Lets plugins change the settings, each the result of the one before; an empty answer changes nothing (reference: CNPG-I §4.6).
 * A plugin that fails fails the configuration: what it would have changed is not known.
 */
export async function enrichConfiguration(
  pool: PodPlugins,
  names: readonly string[],
  request: { cluster: Cluster; settings: Map<string, string>; operation: ConfigurationOperation },
): Promise<Map<string, string>> {
  if (names.length === 0) return request.settings;
  return pool.use(names, async ({ plugins }) => {
    let settings = request.settings;
    for (const plugin of plugins) {
      if (!plugin.capabilities.postgres.includes("TYPE_ENRICH_CONFIGURATION")) continue;
      const configs = Object.fromEntries(settings);
      const { operation, cluster } = request;
      const call = { cluster: withType(cluster), configs, operation };
      const answer = await plugin.postgres.enrichConfiguration(call, { deadlineMs: callLimitMs });
      if (Object.keys(answer).length > 0) settings = new Map(Object.entries(answer));
    }
    return settings;
  });
}
