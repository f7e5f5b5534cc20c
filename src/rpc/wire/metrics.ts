import type { Cluster } from "../../api/generated/cluster.ts";
import type { PluginDocument, PluginMetric, PluginSample } from "../../ports/plugin.ts";
import { Metrics, MetricsCapability_RPC_TypeSchema, MetricType_Type } from "../gen/metrics_pb.ts";
import { decodeDocument, encodeCluster } from "./document.ts";
import { defineRpc, nothing } from "./rpc.ts";
import { capabilityElements, capabilityNames } from "./rpc-capabilities.ts";
import { WireError } from "./wire-error.ts";

const numbers: Record<PluginMetric["type"], MetricType_Type> = {
  counter: MetricType_Type.COUNTER,
  gauge: MetricType_Type.GAUGE,
  untyped: MetricType_Type.UNTYPED,
};

const cluster = {
  toRequest: (document: PluginDocument) => ({ clusterDefinition: encodeCluster(document) }),
  fromRequest: (message: { clusterDefinition: Uint8Array }): Cluster =>
    decodeDocument(message.clusterDefinition, "cluster_definition"),
};

/** Calls of the Metrics service. */
export const metricsRpcs = {
  getCapabilities: defineRpc(Metrics.method.getCapabilities, {
    toRequest: nothing.to,
    fromRequest: nothing.from,
    toResponse: (names: readonly string[]) => ({
      capabilities: capabilityElements(MetricsCapability_RPC_TypeSchema, names),
    }),
    fromResponse: (message) => capabilityNames(MetricsCapability_RPC_TypeSchema, message.capabilities),
  }),
  define: defineRpc(Metrics.method.define, {
    ...cluster,
    toResponse: (metrics: readonly PluginMetric[]) => ({
      metrics: metrics.map((metric) => ({
        fqName: metric.name,
        help: metric.help,
        variableLabels: [...metric.variableLabels],
        constLabels: metric.constLabels,
        valueType: { type: numbers[metric.type] },
      })),
    }),
    fromResponse: (message): readonly PluginMetric[] =>
      message.metrics.map((metric) => ({
        name: metric.fqName,
        help: metric.help,
        variableLabels: metric.variableLabels,
        constLabels: metric.constLabels,
        type: typeOf(metric.fqName, metric.valueType?.type),
      })),
  }),
  collect: defineRpc(Metrics.method.collect, {
    ...cluster,
    toResponse: (samples: readonly PluginSample[]) => ({
      metrics: samples.map(({ name, value, variableLabels }) => ({
        fqName: name,
        value,
        variableLabels: [...variableLabels],
      })),
    }),
    fromResponse: (message): readonly PluginSample[] =>
      message.metrics.map(({ fqName, value, variableLabels }) => ({ name: fqName, value, variableLabels })),
  }),
};

function typeOf(metric: string, type: MetricType_Type | undefined): PluginMetric["type"] {
  const found = Object.entries(numbers).find(([, number]) => number === type);
  if (!found) throw new WireError(`metric ${metric} has value type ${type ?? "nothing"}; 1, 2 or 3 is allowed`);
  return found[0] as PluginMetric["type"];
}
