import { pluginSocketFolder } from "../api/plugin-service.ts";
import { type BuildContext, defaultBuildContext } from "../build/context.ts";

/** Everything that configures the operator besides its command line (reference: cluster controller §9.2). */
export interface OperatorSettings {
  /** Namespaces to watch; empty = all. */
  watchNamespaces: readonly string[];
  context: BuildContext;
  pgbouncerImageName: string;
  inPlaceManagerUpdates: boolean;
  clustersRolloutDelayMs: number;
  instancesRolloutDelayMs: number;
  drainTaints: readonly string[];
  /** Folder with certificates of the webhook that somebody else maintains; empty = the operator does. */
  webhookCertDir: string;
  /** Folder with a certificate for the metrics; empty = plain HTTP. */
  metricsCertDir: string;
  /** Folder with the sockets of plugins that run in the operator's pod. */
  pluginSocketDir: string;
  webhookNamespaceSuffix: boolean;
  manageWebhookConfigurations: boolean;
}

/** Texts by setting name, from one source. */
export type SettingSource = Readonly<Record<string, string | undefined>>;

const defaultDrainTaints = [
  "node.kubernetes.io/unschedulable",
  "ToBeDeletedByClusterAutoscaler",
  "karpenter.sh/disrupted",
  "karpenter.sh/disruption",
];

/**
 * Reads the settings from the environment and what comes after it; a later source wins, and an unreadable text keeps what was
 * before. An empty one counts as absent, save where none is a choice: there a ConfigMap or a Secret takes back by it what the
 * environment says.
 */
export function compileSettings(sources: readonly SettingSource[]): OperatorSettings {
  const values = (name: string): string[] => sources.map((it) => it[name] ?? "").filter((it) => it !== "");
  const text = (name: string, fallback: string): string => values(name).at(-1) ?? fallback;
  const optional = (name: string): string | undefined =>
    sources.flatMap((it, index) => (index === 0 && !it[name] ? [] : (it[name] ?? []))).at(-1);
  const list = (name: string, fallback: readonly string[]): readonly string[] => {
    const value = optional(name);
    if (value === undefined) return fallback;
    return value
      .split(",")
      .map((it) => it.trim())
      .filter((it) => it !== "");
  };
  const integer = (name: string, fallback: number): number =>
    values(name)
      .filter((it) => /^-?\d+$/.test(it.trim()))
      .map(Number)
      .at(-1) ?? fallback;
  const flag = (name: string, fallback: boolean): boolean =>
    values(name)
      .map(parseFlag)
      .filter((it) => it !== undefined)
      .at(-1) ?? fallback;
  const base = defaultBuildContext;
  const userTimeout = text("STANDBY_TCP_USER_TIMEOUT", "");
  const positive = (value: number, fallback: number) => (value > 0 ? value : fallback);
  return {
    watchNamespaces: list("WATCH_NAMESPACE", []),
    context: {
      ...base,
      operatorImageName: text("OPERATOR_IMAGE_NAME", base.operatorImageName),
      operatorNamespace: text("OPERATOR_NAMESPACE", base.operatorNamespace),
      clusterDomain: text("KUBERNETES_CLUSTER_DOMAIN", base.clusterDomain),
      createAnyService: flag("CREATE_ANY_SERVICE", base.createAnyService),
      inheritedAnnotations: list("INHERITED_ANNOTATIONS", base.inheritedAnnotations),
      inheritedLabels: list("INHERITED_LABELS", base.inheritedLabels),
      ...(userTimeout ? { standbyTcpUserTimeout: userTimeout } : {}),
      pullSecretName: optional("PULL_SECRET_NAME") ?? base.pullSecretName,
      defaultPostgresImage: text("POSTGRES_IMAGE_NAME", base.defaultPostgresImage),
      certificateDurationDays: positive(
        integer("CERTIFICATE_DURATION", base.certificateDurationDays),
        base.certificateDurationDays,
      ),
      expiringThresholdDays: positive(
        integer("EXPIRING_CHECK_THRESHOLD", base.expiringThresholdDays),
        base.expiringThresholdDays,
      ),
      monitoringQueriesConfigMap: optional("MONITORING_QUERIES_CONFIGMAP") ?? base.monitoringQueriesConfigMap,
      monitoringQueriesSecret: optional("MONITORING_QUERIES_SECRET") ?? base.monitoringQueriesSecret,
      includePlugins: list("INCLUDE_PLUGINS", base.includePlugins),
    },
    pgbouncerImageName: text("PGBOUNCER_IMAGE_NAME", "ghcr.io/cloudnative-pg/pgbouncer:1.25.1"),
    inPlaceManagerUpdates: flag("ENABLE_INSTANCE_MANAGER_INPLACE_UPDATES", false),
    clustersRolloutDelayMs: integer("CLUSTERS_ROLLOUT_DELAY", 0) * 1_000,
    instancesRolloutDelayMs: integer("INSTANCES_ROLLOUT_DELAY", 0) * 1_000,
    drainTaints: list("DRAIN_TAINTS", defaultDrainTaints),
    webhookCertDir: text("WEBHOOK_CERT_DIR", ""),
    metricsCertDir: text("METRICS_CERT_DIR", ""),
    pluginSocketDir: text("PLUGIN_SOCKET_DIR", pluginSocketFolder),
    webhookNamespaceSuffix: flag("ENABLE_WEBHOOK_NAMESPACE_SUFFIX", false),
    manageWebhookConfigurations: flag("MANAGE_WEBHOOK_CONFIGURATIONS", true),
  };
}

function parseFlag(text: string): boolean | undefined {
  const value = text.trim().toLowerCase();
  if (["1", "t", "true"].includes(value)) return true;
  return ["0", "f", "false"].includes(value) ? false : undefined;
}
