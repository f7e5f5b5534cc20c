import type { Cluster } from "../../api/generated/cluster.ts";
import type { Plugin, PluginMetric, PluginSample } from "../../ports/plugin.ts";
import type { MetricType, SampleSet } from "../metrics/sample-set.ts";
import { withType } from "../wal/archive-file.ts";
import { instancePlugins } from "./instance-plugins.ts";
import type { PodPlugins } from "./pod-plugins.ts";

const callLimitMs = 5_000;

const types: Readonly<Record<PluginMetric["type"], MetricType>> = {
  counter: "counter",
  gauge: "gauge",
  untyped: "untyped",
};

/** Adds what the pod's plugins measure (reference: CNPG-I §4.7); fails when one of them cannot be asked or breaks the rules. */
export async function addPluginMetrics(pool: PodPlugins, cluster: Cluster, samples: SampleSet): Promise<void> {
  const names = instancePlugins(cluster, { withArchiver: true });
  if (names.length === 0) return;
  await pool.use(names, async ({ plugins }) => {
    for (const plugin of plugins) {
      if (plugin.capabilities.metrics.includes("TYPE_METRICS")) await addOne(plugin, cluster, samples);
      if (plugin.capabilities.wal.includes("TYPE_STATUS")) await addArchive(plugin, cluster, samples);
    }
  });
}

async function addOne(plugin: Plugin, cluster: Cluster, samples: SampleSet): Promise<void> {
  const document = withType(cluster);
  const options = { deadlineMs: callLimitMs };
  const definitions = new Map((await plugin.metrics.define(document, options)).map((metric) => [metric.name, metric]));
  for (const sample of await plugin.metrics.collect(document, options)) {
    addSample(plugin.name, definitions.get(sample.name), sample, samples);
  }
}

function addSample(plugin: string, metric: PluginMetric | undefined, sample: PluginSample, samples: SampleSet): void {
  if (!metric) throw new Error(`plugin ${plugin} gave a value for ${sample.name}, which it has not defined`);
  if (metric.variableLabels.length !== sample.variableLabels.length) {
    throw new Error(
      `plugin ${plugin} gave ${sample.variableLabels.length} label values for ${sample.name}, which has ${metric.variableLabels.length} labels`,
    );
  }
  const variable = metric.variableLabels.map((name, at) => [name, sample.variableLabels[at] ?? ""]);
  const labels = { ...metric.constLabels, ...Object.fromEntries(variable) };
  const refusal = samples.add({ name: metric.name, help: metric.help, type: types[metric.type] }, labels, sample.value);
  if (refusal) throw new Error(`plugin ${plugin}: ${sample.name} cannot be shown (${refusal})`);
}

/** How long the answer about an archive is used: listing it costs requests that somebody pays for. */
const statusAgeMs = 60_000;
const known = new Map<string, { atMs: number; firstWal: string; lastWal: string }>();

async function addArchive(plugin: Plugin, cluster: Cluster, samples: SampleSet): Promise<void> {
  let status = known.get(plugin.name);
  const now = performance.now();
  if (!status || now - status.atMs >= statusAgeMs) {
    const { firstWal, lastWal } = await plugin.wal.status(withType(cluster), { deadlineMs: callLimitMs });
    status = { atMs: now, firstWal, lastWal };
    known.set(plugin.name, status);
  }
  const family = {
    name: "cnpg_ts_archive_wal_info",
    help: "First and last WAL file in the archive, as the plugin told within the last minute",
    type: "gauge",
  } as const;
  const { firstWal, lastWal } = status;
  samples.add(family, { plugin: plugin.name, first_wal: firstWal, last_wal: lastWal }, 1);
}
