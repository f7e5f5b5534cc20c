import type { PluginIdentityOptions } from "../framework/identity.ts";

/** Name of the plugin: in `spec.plugins`, as Service label and as socket file. */
export const pluginName = "barman-cloud.cloudnative-pg.io";

/** Version that the plugin claims to be compatible with. */
export const pluginVersion = "0.14.0";

/** Who the plugin says it is; peers and stored Backups compare these texts. */
export const pluginIdentity: PluginIdentityOptions = {
  name: pluginName,
  version: pluginVersion,
  displayName: "BarmanCloudInstance",
  projectUrl: "https://github.com/cloudnative-pg/plugin-barman-cloud",
  repositoryUrl: "https://github.com/cloudnative-pg/plugin-barman-cloud",
  license: "APACHE 2.0",
  licenseUrl: "https://github.com/cloudnative-pg/plugin-barman-cloud/LICENSE",
  maturity: "alpha",
};

/** Metadata that a Backup taken by the plugin keeps; the retention worker finds its own Backups by it. */
export function backupMetadata(clusterUid: string, timeline: number): Record<string, string> {
  return {
    timeline: String(timeline),
    version: pluginVersion,
    name: pluginName,
    displayName: "BarmanCloudInstance",
    clusterUID: clusterUid,
    pluginName,
  };
}
