import { clusterName, secretNames } from "../api/cluster-facts.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { ConfigMap, ObjectMeta, Secret } from "../api/generated/kubernetes.ts";
import { annotations, labels } from "../api/labels.ts";
import { childNames, defaultMonitoringKey, defaultMonitoringName } from "../api/names.ts";
import type { BuildContext } from "./context.ts";
import { appLabels, childMetadata, managedByLabel } from "./metadata.ts";
import { present } from "./present.ts";
import { sameJson } from "./same-json.ts";

type Monitoring = NonNullable<Cluster["spec"]["monitoring"]>;

/** A scrape target for the Prometheus operator. */
export interface PodMonitor {
  apiVersion: "monitoring.coreos.com/v1";
  kind: "PodMonitor";
  metadata: ObjectMeta;
  spec: {
    selector: { matchLabels: Record<string, string> };
    podMetricsEndpoints: PodMetricsEndpoint[];
  };
}

export interface PodMetricsEndpoint {
  port: string;
  scheme?: string;
  tlsConfig?: {
    ca: { secret: { name: string; key: string } };
    serverName: string;
    insecureSkipVerify: boolean;
  };
  metricRelabelings?: NonNullable<Monitoring["podMonitorMetricRelabelings"]>;
  relabelings?: NonNullable<Monitoring["podMonitorRelabelings"]>;
}

/** The default queries for a namespace, copied from the operator's ConfigMap; `undefined` when that holds none. */
export function buildMonitoringConfigMap(
  source: ConfigMap,
  namespace: string,
  context: BuildContext,
): ConfigMap | undefined {
  const queries = source.data?.[defaultMonitoringKey];
  if (queries === undefined) return undefined;
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: monitoringMetadata(namespace, context),
    data: { [defaultMonitoringKey]: queries },
  };
}

/** The default queries for a namespace, copied from the operator's Secret; `undefined` when that holds none. */
export function buildMonitoringSecret(source: Secret, namespace: string, context: BuildContext): Secret | undefined {
  const queries = source.data?.[defaultMonitoringKey];
  if (queries === undefined) return undefined;
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: monitoringMetadata(namespace, context),
    data: { [defaultMonitoringKey]: queries },
  };
}

/** Whether a live copy is to be replaced: it is one of the operator's, and its queries differ. */
export function isMonitoringCopyOutdated(live: ConfigMap | Secret, wanted: ConfigMap | Secret): boolean {
  if (live.metadata.annotations?.[annotations.operatorVersion] === undefined) return false;
  return live.data?.[defaultMonitoringKey] !== wanted.data?.[defaultMonitoringKey];
}

/** Whether the pods are announced to Prometheus. */
export function wantsPodMonitor(cluster: Cluster): boolean {
  return cluster.spec.monitoring?.enablePodMonitor ?? false;
}

/** The scrape target of a cluster's instances. */
export function buildPodMonitor(cluster: Cluster, context: BuildContext): PodMonitor {
  const names = childNames(clusterName(cluster));
  const monitoring = cluster.spec.monitoring;
  const tls = monitoring?.tls?.enabled ?? false;
  return {
    apiVersion: "monitoring.coreos.com/v1",
    kind: "PodMonitor",
    metadata: childMetadata(cluster, context, { name: names.shared, labels: appLabels(cluster) }),
    spec: {
      selector: { matchLabels: { [labels.cluster]: clusterName(cluster), [labels.podRole]: "instance" } },
      podMetricsEndpoints: [
        present<PodMetricsEndpoint>({
          port: "metrics",
          scheme: tls ? "https" : undefined,
          tlsConfig: tls
            ? {
                ca: { secret: { name: secretNames(cluster).serverCa, key: "ca.crt" } },
                serverName: names.rw,
                insecureSkipVerify: true,
              }
            : undefined,
          metricRelabelings: monitoring?.podMonitorMetricRelabelings,
          relabelings: monitoring?.podMonitorRelabelings,
        }),
      ],
    },
  };
}

/** Whether a live scrape target asks for the same, once what its definition fills in is left aside. */
export function isSamePodMonitor(live: Record<string, unknown> | undefined, wanted: PodMonitor): boolean {
  const { podMetricsEndpoints = [], ...rest } = (live ?? {}) as Partial<PodMonitor["spec"]>;
  const { podMetricsEndpoints: endpoints, ...other } = wanted.spec;
  return sameJson([rest, podMetricsEndpoints.map(withDefaults)], [other, endpoints.map(withDefaults)]);
}

function withDefaults(endpoint: PodMetricsEndpoint): unknown {
  const filled = (rules: { action?: string }[] | undefined) =>
    rules?.map((it) => ({ ...it, action: it.action ?? "replace" }));
  const { relabelings, metricRelabelings, ...rest } = endpoint;
  return { ...rest, relabelings: filled(relabelings), metricRelabelings: filled(metricRelabelings) };
}

function monitoringMetadata(namespace: string, context: BuildContext): ObjectMeta {
  return {
    name: defaultMonitoringName,
    namespace,
    labels: { ...managedByLabel, [labels.reload]: "true" },
    annotations: { [annotations.operatorVersion]: context.operatorVersion },
  };
}
