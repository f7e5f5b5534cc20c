import type { Cluster } from "../../api/generated/cluster.ts";
import type { ConfigurationOperation } from "../../ports/plugin.ts";
import type { CustomConfOptions } from "../../postgres/custom-conf.ts";
import type { InstanceContext } from "../instance-context.ts";
import { withType } from "../wal/archive-file.ts";
import { jobPlugins } from "./instance-plugins.ts";
import { createPodPlugins, type PodPlugins } from "./pod-plugins.ts";

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

const operations = { init: "init", restore: "restore", upgrade: "upgrade" } as const;

/** The same in a Job, by the plugins with a socket there; what the Job itself needs stays as it is. */
export async function enrichInJob(
  context: InstanceContext,
  request: {
    cluster: Cluster;
    settings: Map<string, string>;
    mode: keyof typeof operations;
    overrides?: CustomConfOptions["overrides"];
  },
): Promise<Map<string, string>> {
  const { cluster, settings, mode, overrides = {} } = request;
  const wanted = jobPlugins(cluster);
  if (wanted.length === 0) return settings;
  const pool = context.plugins ?? createPodPlugins({ ...context, environment: context.settings.environment });
  try {
    const present = await pool.names();
    const names = wanted.filter((name) => present.includes(name));
    // Not every plugin serves every kind of Job.
    if (names.length < wanted.length)
      context.logger.info("Plugins without a socket are passed over", { wanted, present });
    const enriched = await enrichConfiguration(pool, names, { cluster, settings, operation: operations[mode] });
    return new Map([...enriched, ...Object.entries(overrides)]);
  } finally {
    if (pool !== context.plugins) await pool.close();
  }
}
