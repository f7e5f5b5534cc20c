import { archiveMode, clusterName, isReplicaCluster } from "../api/cluster-facts.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import { byCodeUnits, formatCustomConf } from "./configuration.ts";
import { parseGoDuration } from "./go-duration.ts";
import { buildExtensionPaths, type ImageExtension } from "./image-extensions.ts";
import { buildPreloadLibraries } from "./managed-extensions.ts";
import { defaultParameters, fixedParameters, mandatoryParameters } from "./parameters.ts";
import { slotNameOf } from "./slots.ts";
import { formatSynchronousMetadata, formatSynchronousStandbys, planSynchronousStandbys } from "./synchronous.ts";
import { parsePostgresBoolean } from "./values.ts";

export interface CustomConfOptions {
  /** Major version of PGDATA (file `PG_VERSION`). */
  major: number;
  /**
   * `init` keeps what the user gave for fixed names and leaves the mandatory set out, as the bootstrap job needs it;
   * `upgrade` describes the target version of a major upgrade.
   */
  mode: "init" | "run" | "restore" | "upgrade";
  /** Settings that replace what was computed, such as higher values from the control file. */
  overrides?: Readonly<Record<string, string>>;
}

/** Text of `custom.conf` and the hash that PostgreSQL reports once it has loaded it. */
export function buildCustomConf(cluster: Cluster, options: CustomConfOptions): { text: string; sha256: string } {
  return formatCustomConf(buildSettings(cluster, options));
}

/** The settings of `custom.conf` before they become text; each step overrides the ones before it. */
export function buildSettings(cluster: Cluster, options: CustomConfOptions): Map<string, string> {
  const settings = new Map(Object.entries(defaultParameters));
  const user = cluster.spec.postgresql?.parameters ?? {};
  for (const [name, value] of Object.entries(user)) {
    if (options.mode === "init" || !fixedParameters.has(name)) settings.set(name, value);
  }
  if (options.mode !== "init") applyMandatory(settings, cluster, options.major);
  settings.set("archive_mode", archiveMode(cluster));
  applySynchronousReplication(settings, cluster);
  applyLogicalDecoding(settings, cluster, options.major);
  settings.set("cluster_name", clusterName(cluster));
  applyReplicaDelay(settings, cluster);
  settings.set(
    "shared_preload_libraries",
    buildPreloadLibraries(user, cluster.spec.postgresql?.shared_preload_libraries ?? []),
  );
  applyTemporaryTablespaces(settings, cluster);
  applyExtensionPaths(settings, cluster, options.mode);
  for (const [name, value] of Object.entries(options.overrides ?? {})) settings.set(name, value);
  return settings;
}

function applyMandatory(settings: Map<string, string>, cluster: Cluster, major: number): void {
  for (const [name, value] of Object.entries(mandatoryParameters)) settings.set(name, value);
  if (major >= 17) settings.set("allow_alter_system", cluster.spec.postgresql?.enableAlterSystem ? "on" : "off");
}

function applySynchronousReplication(settings: Map<string, string>, cluster: Cluster): void {
  const standbys = planSynchronousStandbys(cluster);
  if (!standbys) return;
  settings.set("synchronous_standby_names", formatSynchronousStandbys(standbys));
  settings.set("cnpg.synchronous_standby_names_metadata", formatSynchronousMetadata(standbys));
}

function applyLogicalDecoding(settings: Map<string, string>, cluster: Cluster, major: number): void {
  const slots = cluster.spec.replicationSlots?.highAvailability;
  if (!slots?.synchronizeLogicalDecoding || slots.enabled === false) return;
  const user = cluster.spec.postgresql?.parameters ?? {};
  // Nothing was ever sent to an instance that is only being made: waiting for it would stop every subscriber.
  const unmade = cluster.status?.initializingPVC ?? [];
  const standbys = (cluster.status?.instanceNames ?? [])
    .filter((name) => name !== cluster.status?.currentPrimary && !unmade.includes(name))
    .sort(byCodeUnits)
    .map((name) => slotNameOf(name, slots.slotPrefix))
    .join(",");
  if (Object.keys(user).some((name) => name.startsWith("pg_failover_slots."))) {
    settings.set("pg_failover_slots.standby_slot_names", standbys);
  }
  if (major >= 17 && parsePostgresBoolean(user["sync_replication_slots"] ?? "") === true) {
    settings.set("synchronized_standby_slots", standbys);
  }
}

function applyReplicaDelay(settings: Map<string, string>, cluster: Cluster): void {
  const delay = cluster.spec.replica?.minApplyDelay;
  if (!delay || !isReplicaCluster(cluster)) return;
  const seconds = Math.trunc((parseGoDuration(delay) ?? 0) / 1000);
  if (parseGoDuration(delay) !== 0) settings.set("recovery_min_apply_delay", `${seconds}s`);
}

function applyTemporaryTablespaces(settings: Map<string, string>, cluster: Cluster): void {
  const names = (cluster.spec.tablespaces ?? []).filter((item) => item.temporary).map((item) => item.name);
  if (names.length > 0) settings.set("temp_tablespaces", names.sort(byCodeUnits).join(","));
}

function applyExtensionPaths(settings: Map<string, string>, cluster: Cluster, mode: CustomConfOptions["mode"]): void {
  const target = mode === "upgrade";
  const info = target ? cluster.status?.targetPgDataImageInfo : cluster.status?.pgDataImageInfo;
  if (target && !info) {
    throw new Error(
      `cluster ${clusterName(cluster)}: status.targetPgDataImageInfo is missing, so the extensions of the target version ` +
        "are unknown; the operator writes it before it starts a major upgrade",
    );
  }
  const extensions: readonly ImageExtension[] = info?.extensions ?? [];
  const user = cluster.spec.postgresql?.parameters ?? {};
  const paths = buildExtensionPaths(extensions, target ? "/new-extensions" : "/extensions", {
    ...(user["extension_control_path"] ? { extensionControlPath: user["extension_control_path"] } : {}),
    ...(user["dynamic_library_path"] ? { dynamicLibraryPath: user["dynamic_library_path"] } : {}),
  });
  for (const [name, value] of Object.entries(paths ?? {})) settings.set(name, value);
}
