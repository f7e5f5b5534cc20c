export { Backup, type BackupProps, type BackupSpec } from "./backup/backup.ts";
export { ScheduledBackup, type ScheduledBackupProps, type ScheduledBackupSpec } from "./backup/scheduled-backup.ts";
export { CustomResource, type ResourceProps } from "./base/custom-resource.ts";
export type { ProgramResources } from "./base/program-resources.ts";
export type { ProgramSecurity } from "./base/program-security.ts";
export { BarmanCloudPluginChart, OperatorChart } from "./charts.ts";
export { Cluster, type ClusterProps, type ClusterSpec, type ClusterStorage } from "./cluster/cluster.ts";
export { Database, type DatabaseProps, type DatabaseSpec } from "./database/database.ts";
export { DatabaseRole, type DatabaseRoleProps, type DatabaseRoleSpec } from "./database/database-role.ts";
export { Publication, type PublicationProps, type PublicationSpec } from "./database/publication.ts";
export { Subscription, type SubscriptionProps, type SubscriptionSpec } from "./database/subscription.ts";
export {
  ClusterImageCatalog,
  type ClusterImageCatalogProps,
  type ClusterImageCatalogSpec,
} from "./image-catalog/cluster-image-catalog.ts";
export { ImageCatalog, type ImageCatalogProps, type ImageCatalogSpec } from "./image-catalog/image-catalog.ts";
export { ObjectStore, type ObjectStoreProps, type ObjectStoreSpec } from "./object-store/object-store.ts";
export { Operator } from "./operator/operator.ts";
export type { OperatorOptions } from "./operator/options.ts";
export { BarmanCloudPlugin } from "./plugin/barman-cloud-plugin.ts";
export type { BarmanCloudPluginOptions, PluginCertificates } from "./plugin/options.ts";
export { Pooler, type PoolerProps, type PoolerSpec } from "./pooler/pooler.ts";
