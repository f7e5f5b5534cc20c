import type { PluginMetadata } from "../../ports/plugin.ts";
import type { PluginServices } from "./services.ts";

/** Who the plugin is; only name and version are needed. */
export interface PluginIdentityOptions extends Partial<Omit<PluginMetadata, "name" | "version">> {
  /** The one name of Service label, socket file and `spec.plugins`. */
  name: string;
  version: string;
  /** The plugin adds a sidecar to instance pods, which serves the instance manager. */
  injectsInstanceSidecar?: boolean;
  /** The same for the Jobs that make an instance. */
  injectsJobSidecar?: boolean;
  /** Whether calls can be served now. @default always */
  ready?: () => boolean | Promise<boolean>;
}

/** The answer to GetPluginMetadata. Throws on a name that peers would not find again. */
export function compileMetadata(identity: PluginIdentityOptions): PluginMetadata {
  if (!/^[a-z0-9]([-.a-z0-9]{0,61}[a-z0-9])?$/i.test(identity.name)) {
    throw new TypeError(
      `plugin name "${identity.name}": use at most 63 letters, digits, "-" and ".", beginning and ending with a letter or digit`,
    );
  }
  return {
    name: identity.name,
    version: identity.version,
    displayName: identity.displayName ?? identity.name,
    description: identity.description ?? "",
    projectUrl: identity.projectUrl ?? "",
    repositoryUrl: identity.repositoryUrl ?? "",
    license: identity.license ?? "",
    licenseUrl: identity.licenseUrl ?? "",
    maturity: identity.maturity ?? "alpha",
    vendor: identity.vendor ?? "",
    manifest: identity.manifest ?? {},
  };
}

/** Names of the services that the plugin claims, from what it has. */
export function listServices(identity: PluginIdentityOptions, services: PluginServices): string[] {
  const claims: [unknown, string][] = [
    [services.operator, "TYPE_OPERATOR_SERVICE"],
    [services.wal, "TYPE_WAL_SERVICE"],
    [services.backup, "TYPE_BACKUP_SERVICE"],
    [services.lifecycle, "TYPE_LIFECYCLE_SERVICE"],
    [services.reconciler, "TYPE_RECONCILER_HOOKS"],
    [services.restoreJob, "TYPE_RESTORE_JOB"],
    [services.postgres, "TYPE_POSTGRES"],
    [identity.injectsInstanceSidecar, "TYPE_INSTANCE_SIDECAR_INJECTION"],
    [identity.injectsJobSidecar, "TYPE_INSTANCE_JOB_SIDECAR_INJECTION"],
    [services.metrics, "TYPE_METRICS"],
  ];
  return claims.filter(([has]) => Boolean(has)).map(([, name]) => name);
}
