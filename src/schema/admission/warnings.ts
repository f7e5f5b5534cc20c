import { archiveMode } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { annotations } from "../../api/labels.ts";
import { parseGoDuration } from "../../postgres/go-duration.ts";

/** Things that are accepted and yet deserve a word; `given` is the object before defaults were applied. */
export function clusterWarnings(given: Cluster): string[] {
  const { spec } = given;
  return [
    ...validationWarnings(given),
    ...storageWarnings("spec.storage", spec.storage),
    ...storageWarnings("spec.walStorage", spec.walStorage),
    ...backupWarnings(spec),
    ...parameterWarnings(given),
    ...monitoringWarnings(spec),
    ...ownerWarnings(given),
    ...(spec.nodeMaintenanceWindow
      ? ["spec.nodeMaintenanceWindow is deprecated: rely on the disruption budgets and on switchover when draining"]
      : []),
  ];
}

/** Warnings of an update: the cluster's own, and changes that have no effect. */
export function clusterUpdateWarnings(given: Cluster, previous: Cluster): string[] {
  const changed =
    previous.spec.bootstrap !== undefined &&
    given.spec.bootstrap !== undefined &&
    JSON.stringify(previous.spec.bootstrap) !== JSON.stringify(given.spec.bootstrap);
  return [
    ...clusterWarnings(given),
    ...(changed ? ["spec.bootstrap changed, which has no effect on a cluster that exists"] : []),
  ];
}

/** Whether the annotation turns validation off. */
export function isValidationDisabled(object: { metadata: { annotations?: Record<string, string> } }): boolean {
  return object.metadata.annotations?.[annotations.validation] === "disabled";
}

/** Warnings about the annotation that turns validation off. */
export function validationWarnings(object: { metadata: { annotations?: Record<string, string> } }): string[] {
  const value = object.metadata.annotations?.[annotations.validation];
  if (value === undefined || value === "" || value === "enabled") return [];
  return value === "disabled"
    ? [`validation is disabled by the annotation ${annotations.validation}`]
    : [`the annotation ${annotations.validation} has the unknown value "${value}": validation goes on`];
}

function storageWarnings(path: string, storage: Cluster["spec"]["storage"]): string[] {
  const template = storage?.pvcTemplate;
  return [
    ...(storage?.storageClass && template?.storageClassName
      ? [`${path}.storageClass and ${path}.pvcTemplate.storageClassName are both set: the former is used`]
      : []),
    ...(storage?.size && template?.resources?.requests?.["storage"] !== undefined
      ? [`${path}.size and ${path}.pvcTemplate.resources.requests.storage are both set: the former is used`]
      : []),
  ];
}

/** The owner of the application's database has a Secret of its own, which a managed role may make nobody's. */
function ownerWarnings({ metadata, spec }: Cluster): string[] {
  const { initdb, recovery, pg_basebackup: copy } = spec.bootstrap ?? {};
  const section = recovery ?? copy ?? initdb ?? {};
  const owner = section.owner || section.database || (recovery || copy ? undefined : "app");
  const secret = section.secret?.name || `${metadata.name ?? ""}-app`;
  const role = (spec.managed?.roles ?? []).find(({ name, ensure }) => name === owner && ensure !== "absent");
  const other = role?.disablePassword ? "no password" : role?.passwordSecret && `Secret ${role.passwordSecret.name}`;
  if (!role || !other || role.passwordSecret?.name === secret) return [];
  return [
    `spec.managed.roles gives ${owner}, who owns the application's database, ${other}: Secret ${secret} is not applied`,
  ];
}

function backupWarnings(spec: Cluster["spec"]): string[] {
  const inTree =
    spec.backup?.barmanObjectStore !== undefined ||
    (spec.externalClusters ?? []).some(({ barmanObjectStore }) => barmanObjectStore !== undefined);
  return [
    ...(inTree
      ? ["barmanObjectStore is deprecated and announced to be removed in 1.31.0: use the Barman Cloud plugin instead"]
      : []),
    ...(spec.backup?.retentionPolicy && !spec.backup.barmanObjectStore
      ? ["spec.backup.retentionPolicy has no effect without spec.backup.barmanObjectStore"]
      : []),
  ];
}

function parameterWarnings(given: Cluster): string[] {
  const parameters = given.spec.postgresql?.parameters ?? {};
  const buffers = parameters["shared_buffers"];
  const mode = parameters["archive_mode"];
  return [
    ...(buffers !== undefined && /^\s*\d+\s*$/.test(buffers)
      ? [
          `spec.postgresql.parameters.shared_buffers has no unit: PostgreSQL reads ${buffers.trim()} as a number ` +
            "of 8 kB pages; write the unit",
        ]
      : []),
    ...(mode !== undefined && mode !== archiveMode(given)
      ? [
          `spec.postgresql.parameters.archive_mode is set by the operator: "${mode}" is replaced by "${archiveMode(given)}"`,
        ]
      : []),
  ];
}

function monitoringWarnings({ monitoring }: Cluster["spec"]): string[] {
  if (!monitoring) return [];
  const { metricsQueriesTTL, enablePodMonitor, podMonitorMetricRelabelings, podMonitorRelabelings } = monitoring;
  const lists = { podMonitorMetricRelabelings, podMonitorRelabelings };
  return [
    ...(metricsQueriesTTL !== undefined && parseGoDuration(metricsQueriesTTL) === 0
      ? ["spec.monitoring.metricsQueriesTTL is zero: every scrape runs every query"]
      : []),
    ...(enablePodMonitor ? ["spec.monitoring.enablePodMonitor is deprecated: create a PodMonitor of your own"] : []),
    ...Object.entries(lists)
      .filter(([, list]) => (list ?? []).length > 0)
      .map(([field]) => `spec.monitoring.${field} is deprecated: create a PodMonitor of your own`),
  ];
}
