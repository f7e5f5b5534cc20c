import {
  findPluginError,
  type Plugin,
  type PluginCallOptions,
  PluginError,
  type PluginMetric,
  type PluginSample,
} from "../../ports/plugin.ts";
import { encodeCluster } from "../wire/document.ts";

/** A metric with its samples of one scrape. */
export interface CollectedMetric extends PluginMetric {
  samples: readonly PluginSample[];
}

export interface CollectedMetrics {
  metrics: readonly CollectedMetric[];
  /** Plugins that failed; the metrics of the others are there all the same. */
  errors: readonly PluginError[];
}

/** Asks all plugins with metrics, at the same time. */
export async function collectMetrics(
  plugins: readonly Plugin[],
  cluster: object,
  options?: PluginCallOptions,
): Promise<CollectedMetrics> {
  const interested = plugins.filter(({ capabilities }) => capabilities.metrics.includes("TYPE_METRICS"));
  if (interested.length === 0) return { metrics: [], errors: [] };
  const text = encodeCluster(cluster);
  const results = await Promise.all(interested.map((plugin) => collectOne(plugin, text, options)));
  return {
    metrics: results.flatMap((result) => (result instanceof PluginError ? [] : result)),
    errors: results.filter((result) => result instanceof PluginError),
  };
}

async function collectOne(
  plugin: Plugin,
  cluster: Uint8Array,
  options: PluginCallOptions | undefined,
): Promise<CollectedMetric[] | PluginError> {
  try {
    // The definitions are asked each time: they belong to these samples.
    const definitions = await plugin.metrics.define(cluster, options);
    return matchSamples(plugin.name, definitions, await plugin.metrics.collect(cluster, options));
  } catch (error) {
    const known = findPluginError(error);
    if (known) return known;
    throw error;
  }
}

/** Sorts samples to their definitions; one without a definition, or with other labels, would break the whole exposition. */
export function matchSamples(
  plugin: string,
  definitions: readonly PluginMetric[],
  samples: readonly PluginSample[],
): CollectedMetric[] {
  const fail = (problem: string) =>
    new PluginError(`plugin ${plugin}, Metrics.Collect: ${problem}`, {
      plugin,
      operation: "Metrics.Collect",
      kind: "protocol",
    });
  for (const { name, variableLabels } of samples) {
    const definition = definitions.find((candidate) => candidate.name === name);
    if (!definition) throw fail(`metric ${name} is not defined`);
    const expected = definition.variableLabels.length;
    if (variableLabels.length !== expected) {
      throw fail(`metric ${name} has ${variableLabels.length} label values for ${expected} labels`);
    }
  }
  return definitions.map((definition) => ({
    ...definition,
    samples: samples.filter(({ name }) => name === definition.name),
  }));
}
