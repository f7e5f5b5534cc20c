import { followsSource } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { PluginError } from "../../ports/plugin.ts";
import { buildExternalConninfo, findExternalCluster } from "../../postgres/conninfo.ts";
import { buildSettings } from "../../postgres/custom-conf.ts";
import { raiseHotStandbyValues } from "../../postgres/hot-standby.ts";
import { refreshCertificates } from "../certificates.ts";
import { mySlotName, writeAccessFiles, writeCustomConf, writeStandbyOverride } from "../configuration-files.ts";
import { writeExternalFiles } from "../external-servers.ts";
import type { InstanceContext } from "../instance-context.ts";
import { relocate } from "../instance-paths.ts";
import { type SecretReader, secretText } from "../secret-reader.ts";

export interface FilesResult {
  /** Something that PostgreSQL has to load changed. */
  changed: boolean;
  /** Hash of the configuration on disk. */
  sha256: string;
}

async function ldapPassword(cluster: Cluster, secrets: SecretReader, signal: AbortSignal): Promise<string | undefined> {
  const reference = cluster.spec.postgresql?.ldap?.bindSearchAuth?.bindPassword;
  if (!reference?.name) return undefined;
  const read = await secrets.read(reference.name, signal);
  return read.kind === "found" ? secretText(read.secret, reference.key) : undefined;
}

/** Settings that a standby has to raise before its first start in this pod (reference: instance manager §4.2). */
async function followerOverrides(
  context: InstanceContext,
  cluster: Cluster,
  major: number,
): Promise<Record<string, string>> {
  if ((await context.data.role()) !== "standby") return {};
  if (!(await context.files.exists(context.paths.initialized))) {
    await context.files.writeAtomic(context.paths.initialized, "", 0o600);
  }
  const control = await context.data.tryControl();
  if (!control) return {};
  return raiseHotStandbyValues(buildSettings(cluster, { major, mode: "run" }), control);
}

/** Writes `override.conf` for an instance that follows; a primary's is left alone. */
export async function refreshOverride(context: InstanceContext, cluster: Cluster): Promise<boolean> {
  if ((await context.data.role()) !== "standby") return false;
  const isTarget = cluster.status?.targetPrimary === context.settings.podName;
  if (!isTarget) return writeStandbyOverride(context, { slotName: mySlotName(context, cluster) });
  if (!followsSource(cluster)) return false;
  const source = findExternalCluster(cluster, cluster.spec.replica?.source ?? "");
  if (!source) {
    throw new Error(
      `spec.replica.source "${cluster.spec.replica?.source ?? ""}" is not among spec.externalClusters; add it there`,
    );
  }
  // Without a server there is only an archive, and PostgreSQL must not take the name alone for a local server.
  const isServer = Object.keys(source.connectionParameters ?? {}).length > 0;
  const text = isServer ? buildExternalConninfo(source, { application_name: context.settings.podName }) : "";
  const conninfo = relocate(context.settings, text);
  return writeStandbyOverride(context, { conninfo, slotName: undefined });
}

/**
 * Credentials of external clusters: `source` is the one that a replica cluster follows, as any of its instances may be the next to
 * do; `others` may be the publishers of subscriptions.
 */
export async function refreshExternalFiles(
  context: InstanceContext,
  cluster: Cluster,
  secrets: SecretReader,
  options: { which: "source" | "others"; signal: AbortSignal },
): Promise<void> {
  const source = followsSource(cluster) ? cluster.spec.replica?.source : undefined;
  for (const server of cluster.spec.externalClusters ?? []) {
    const isSource = server.name === source;
    if (isSource !== (options.which === "source")) continue;
    try {
      await writeExternalFiles(context, server, secrets, options.signal);
    } catch (error) {
      options.signal.throwIfAborted();
      const told = { externalCluster: server.name, error };
      const message = "The credentials of an external cluster were left as they are";
      // Others may have been needed only once, and their Secrets be gone for good.
      if (isSource) context.logger.warning(message, told);
      else context.logger.debug(message, told);
    }
  }
}

/** Brings every file of the instance up to date with the Cluster and its Secrets. */
export async function refreshFiles(
  context: InstanceContext,
  cluster: Cluster,
  secrets: SecretReader,
  options: { beforeFirstStart: boolean; signal: AbortSignal },
): Promise<FilesResult> {
  const { signal } = options;
  const certificates = await refreshCertificates(context, cluster, secrets, signal);
  for (const problem of certificates.problems) context.logger.warning("A certificate file was left as it is", problem);
  const major = await context.data.major();
  const ldap = await ldapPassword(cluster, secrets, signal);
  const access = await writeAccessFiles(context, cluster, {
    major,
    ...(ldap === undefined ? {} : { ldapBindPassword: ldap }),
  });
  const overrides = options.beforeFirstStart ? await followerOverrides(context, cluster, major) : {};
  const custom = await writeCustomConf(context, cluster, { major, mode: "run", overrides }).catch((error: unknown) => {
    const { configurationHash: sha256 } = context.state;
    // A plugin that is away must not keep a running instance from being promoted or stopped; its settings stay as they are.
    if (sha256 === "" || options.beforeFirstStart || !(error instanceof PluginError)) throw error;
    context.logger.warning("custom.conf stays as it is: a plugin could not be asked for its settings", { error });
    return { changed: false, sha256 };
  });
  await refreshExternalFiles(context, cluster, secrets, { which: "source", signal });
  const override = await refreshOverride(context, cluster);
  context.state.configurationHash = custom.sha256;
  return { changed: certificates.changed || access || custom.changed || override, sha256: custom.sha256 };
}
