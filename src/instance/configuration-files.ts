import { ports } from "../api/constants.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import { formatCustomConf } from "../postgres/configuration.ts";
import { buildPrimaryConninfo } from "../postgres/conninfo.ts";
import { buildSettings, type CustomConfOptions } from "../postgres/custom-conf.ts";
import { buildHbaConf } from "../postgres/hba-conf.ts";
import { buildIdentConf } from "../postgres/ident-conf.ts";
import { imageMajor } from "../postgres/image-version.ts";
import { ensureIncludes } from "../postgres/includes.ts";
import { buildOverrideConf } from "../postgres/override-conf.ts";
import { slotNameOf } from "../postgres/slots.ts";
import type { InstanceContext } from "./instance-context.ts";
import { relocate } from "./instance-paths.ts";
import { enrichConfiguration, enrichInJob } from "./plugins/enrich-configuration.ts";
import { instancePlugins } from "./plugins/instance-plugins.ts";

async function install(context: InstanceContext, path: string, text: string): Promise<boolean> {
  const changed = await context.files.writeAtomic(path, relocate(context.settings, text), 0o600);
  if (changed) {
    const filename = path.slice(path.lastIndexOf("/") + 1);
    context.logger.info("Installed configuration file", { pgdata: context.paths.pgData, filename });
  }
  return changed;
}

/** The settings with what the plugins of the pod make of them. */
async function enrichedSettings(
  context: InstanceContext,
  cluster: Cluster,
  options: CustomConfOptions,
): Promise<Map<string, string>> {
  const settings = buildSettings(cluster, options);
  const { mode, overrides = {} } = options;
  if (mode !== "run") return enrichInJob(context, { cluster, settings, mode, overrides });
  if (!context.plugins) return settings;
  return enrichConfiguration(context.plugins, instancePlugins(cluster), { cluster, settings, operation: "reconcile" });
}

/** Writes `custom.conf` and the include lines; gives the hash that PostgreSQL will report once it has loaded it. */
export async function writeCustomConf(
  context: InstanceContext,
  cluster: Cluster,
  options: CustomConfOptions,
): Promise<{ changed: boolean; sha256: string }> {
  const { settings, paths } = context;
  const values = await enrichedSettings(context, cluster, options);
  // Only on a plain host, where several instances share the network.
  if (settings.postgresPort !== ports.postgres && values.has("port")) values.set("port", String(settings.postgresPort));
  for (const [name, value] of values) values.set(name, relocate(settings, value));
  const { text, sha256 } = formatCustomConf(values);
  const changed = await install(context, paths.customConf, text);
  const includes = ensureIncludes((await context.files.read(paths.postgresqlConf)) ?? "");
  if (includes.changed) await context.files.writeAtomic(paths.postgresqlConf, includes.text, 0o600);
  return { changed: changed || includes.changed, sha256 };
}

/** Writes `pg_hba.conf` and `pg_ident.conf`. */
export async function writeAccessFiles(
  context: InstanceContext,
  cluster: Cluster,
  options: { major: number; ldapBindPassword?: string },
): Promise<boolean> {
  // The image may be newer than PGDATA while a major upgrade is being prepared.
  const major = imageMajor(cluster.status?.image ?? cluster.spec.imageName ?? "") ?? options.major;
  const { ldapBindPassword } = options;
  const hba = buildHbaConf({ cluster, major, ...(ldapBindPassword === undefined ? {} : { ldapBindPassword }) });
  const hbaChanged = await install(context, context.paths.hba, hba);
  const ident = buildIdentConf(context.systemUser, cluster.spec.postgresql?.pg_ident ?? []);
  const identChanged = await install(context, context.paths.ident, ident);
  return hbaChanged || identChanged;
}

/** Connection text of a standby of this cluster. */
export function primaryConninfo(
  context: InstanceContext,
  options: { host?: string; applicationName?: string } = {},
): string {
  const { settings } = context;
  const text = buildPrimaryConninfo({
    host: options.host ?? settings.primaryHost,
    applicationName: options.applicationName ?? settings.podName,
    ...(settings.tcpUserTimeout === undefined ? {} : { tcpUserTimeout: settings.tcpUserTimeout }),
  });
  return relocate(settings, text).replace(` port=${ports.postgres} `, ` port=${settings.primaryPort} `);
}

/** Whether standbys stream through slots of their own. */
export function usesHaSlots(cluster: Cluster): boolean {
  const slots = cluster.spec.replicationSlots?.highAvailability;
  return slots !== undefined && slots.enabled !== false;
}

/** Name of the slot on the primary that serves this instance; `undefined` when such slots are off. */
export function mySlotName(context: InstanceContext, cluster: Cluster): string | undefined {
  if (!usesHaSlots(cluster)) return undefined;
  return slotNameOf(context.settings.podName, cluster.spec.replicationSlots?.highAvailability?.slotPrefix);
}

/** Writes the standby form of `override.conf`; without a slot for an instance that has none on the primary yet. */
export async function writeStandbyOverride(
  context: InstanceContext,
  options: { conninfo?: string; slotName: string | undefined },
): Promise<boolean> {
  const { slotName } = options;
  const text = buildOverrideConf({
    kind: "standby",
    primaryConninfo: options.conninfo ?? primaryConninfo(context),
    ...(slotName === undefined ? {} : { slotName }),
  });
  const changed = await context.files.writeAtomic(context.paths.overrideConf, relocate(context.settings, text), 0o600);
  if (changed) context.logger.info("Updated replication settings", { filename: "override.conf" });
  return changed;
}

/** Writes an empty `override.conf`, as a folder needs it before the includes are read. */
export async function writeEmptyOverride(context: InstanceContext): Promise<void> {
  await context.files.writeAtomic(context.paths.overrideConf, buildOverrideConf({ kind: "empty" }), 0o600);
}

/** Writes the settings for the time of a logical import, in which nothing has to be durable. */
export async function writeImportOverride(context: InstanceContext): Promise<void> {
  await context.files.writeAtomic(context.paths.overrideConf, buildOverrideConf({ kind: "import" }), 0o600);
}

/** Sets the mode of `postgresql.auto.conf`, which is what turns ALTER SYSTEM off before PostgreSQL 17. */
export async function setAutoConfMode(context: InstanceContext, writable: boolean): Promise<void> {
  if (!(await context.files.exists(context.paths.autoConf))) return;
  await context.files.chmod(context.paths.autoConf, writable ? 0o600 : 0o400);
}

/** Lets or keeps users from ALTER SYSTEM by the mode of its file; from PostgreSQL 17 on a setting does it. */
export async function protectAutoConf(context: InstanceContext, cluster: Cluster): Promise<void> {
  const major = await context.data.major();
  if (major < 17) await setAutoConfMode(context, cluster.spec.postgresql?.enableAlterSystem ?? false);
}
