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

const claims: Readonly<Record<keyof PluginServices, string>> = {
  operator: "TYPE_OPERATOR_SERVICE",
  wal: "TYPE_WAL_SERVICE",
  backup: "TYPE_BACKUP_SERVICE",
  lifecycle: "TYPE_LIFECYCLE_SERVICE",
  reconciler: "TYPE_RECONCILER_HOOKS",
  restoreJob: "TYPE_RESTORE_JOB",
  postgres: "TYPE_POSTGRES",
  metrics: "TYPE_METRICS",
};

/** Names of what the plugin claims: its services in the order in which it gives them, then the sidecars that it adds. */
export function listServices(identity: PluginIdentityOptions, services: PluginServices): string[] {
  const given = (Object.keys(services) as (keyof PluginServices)[]).filter((name) => services[name] !== undefined);
  return [
    ...given.map((name) => claims[name]),
    ...(identity.injectsInstanceSidecar ? ["TYPE_INSTANCE_SIDECAR_INJECTION"] : []),
    ...(identity.injectsJobSidecar ? ["TYPE_INSTANCE_JOB_SIDECAR_INJECTION"] : []),
  ];
}
