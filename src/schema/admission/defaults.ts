import { defaultTablespaceOwner } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { annotations } from "../../api/labels.ts";
import { parseGoBoolean } from "../../api/markers.ts";
import { defaultMonitoringKey, defaultMonitoringName } from "../../api/names.ts";
import { defaultBootstrap } from "./default-bootstrap.ts";
import { defaultParametersOf } from "./default-parameters.ts";
import { parseLivenessPinger } from "./liveness-pinger.ts";
import type { AdmissionSettings } from "./settings.ts";

type Spec = Cluster["spec"];

/** How far defaults go; see `applyDefaults`. */
export interface DefaultsOptions {
  /**
   * `preserve` keeps what the user wrote for fixed parameters, so that validation can refuse it; `enforce` drops it, for
   * objects that came past validation.
   */
  mode: "preserve" | "enforce";
  settings: AdmissionSettings;
}

/** A copy of the cluster with the defaults that depend on more than one field; those of the schema are the API server's. */
export function applyDefaults(cluster: Cluster, options: DefaultsOptions): Cluster {
  const { settings } = options;
  const steps: readonly ((draft: Cluster) => void)[] = [
    (draft) => defaultImage(draft.spec, settings),
    (draft) => defaultBootstrap(draft.spec),
    (draft) => defaultAffinity(draft.spec),
    (draft) => defaultBackup(draft.spec),
    (draft) => defaultParameterMap(draft, options.mode),
    (draft) => {
      draft.spec.logLevel ||= "info";
    },
    (draft) => defaultMonitoring(draft.spec, settings),
    (draft) => defaultReplicationSlots(draft.spec),
    (draft) => defaultTablespaceOwners(draft),
    (draft) => defaultDurability(draft.spec),
    (draft) => defaultPlugins(draft.spec, settings),
    (draft) => defaultIsolationCheck(draft),
    (draft) => defaultFailoverQuorum(draft),
  ];
  const draft = structuredClone(cluster);
  for (const step of steps) step(draft);
  return draft;
}

function defaultImage(spec: Spec, settings: AdmissionSettings): void {
  if (!spec.imageName && !spec.imageCatalogRef) spec.imageName = settings.defaultPostgresImage;
}

function defaultAffinity(spec: Spec): void {
  if (spec.affinity?.enablePodAntiAffinity === false || spec.affinity?.podAntiAffinityType) return;
  spec.affinity = { ...spec.affinity, podAntiAffinityType: "preferred" };
}

function defaultBackup(spec: Spec): void {
  if (spec.backup) spec.backup.target ||= "prefer-standby";
}

function defaultParameterMap(draft: Cluster, mode: DefaultsOptions["mode"]): void {
  const parameters = defaultParametersOf(draft, mode);
  if (parameters) draft.spec.postgresql = { ...draft.spec.postgresql, parameters };
}

function defaultMonitoring(spec: Spec, settings: AdmissionSettings): void {
  if (spec.monitoring?.disableDefaultQueries) return;
  const entry = { name: defaultMonitoringName, key: defaultMonitoringKey };
  const prepend = (list: { name: string; key: string }[] | undefined) =>
    list?.some(({ name, key }) => name === entry.name && key === entry.key) ? list : [entry, ...(list ?? [])];
  if (settings.monitoringQueriesConfigMap)
    spec.monitoring = { ...spec.monitoring, customQueriesConfigMap: prepend(spec.monitoring?.customQueriesConfigMap) };
  if (settings.monitoringQueriesSecret)
    spec.monitoring = { ...spec.monitoring, customQueriesSecret: prepend(spec.monitoring?.customQueriesSecret) };
}

function defaultReplicationSlots(spec: Spec): void {
  const slots = spec.replicationSlots ?? {};
  spec.replicationSlots = {
    ...slots,
    highAvailability: { enabled: true, slotPrefix: "_cnpg_", ...slots.highAvailability },
    synchronizeReplicas: slots.synchronizeReplicas ?? { enabled: true },
  };
}

function defaultTablespaceOwners(draft: Cluster): void {
  for (const tablespace of draft.spec.tablespaces ?? [])
    if (!tablespace.owner?.name) tablespace.owner = { name: defaultTablespaceOwner(draft) };
}

function defaultDurability(spec: Spec): void {
  if (spec.postgresql?.synchronous) spec.postgresql.synchronous.dataDurability ||= "required";
}

function defaultPlugins(spec: Spec, settings: AdmissionSettings): void {
  for (const name of settings.includePlugins)
    if (!spec.plugins?.some((plugin) => plugin.name === name))
      spec.plugins = [...(spec.plugins ?? []), { name, enabled: true }];
}

function defaultIsolationCheck(draft: Cluster): void {
  if (draft.spec.probes?.liveness?.isolationCheck) return;
  const pinger = parseLivenessPinger(draft.metadata.annotations?.[annotations.livenessPinger]);
  const isolationCheck =
    pinger && !("error" in pinger)
      ? { enabled: pinger.enabled, requestTimeout: pinger.requestTimeout, connectionTimeout: pinger.connectionTimeout }
      : { enabled: true, requestTimeout: 1000, connectionTimeout: 1000 };
  const probes = draft.spec.probes ?? {};
  draft.spec.probes = { ...probes, liveness: { ...probes.liveness, isolationCheck } };
}

function defaultFailoverQuorum(draft: Cluster): void {
  const wanted = parseGoBoolean(draft.metadata.annotations?.[annotations.failoverQuorum]);
  const synchronous = draft.spec.postgresql?.synchronous;
  if (wanted !== undefined && synchronous) synchronous.failoverQuorum = wanted;
}
