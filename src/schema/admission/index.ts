// What the webhooks of the operator decide, usable without a cluster: at synth, in the webhooks and in the guard.
export {
  type BackupAdmission,
  backupWarnings,
  scheduledBackupWarnings,
  validateBackup,
  validateMadeBackups,
  validateScheduledBackup,
} from "./backup.ts";
export { validateClusterCreate, validateClusterUpdate } from "./cluster.ts";
export { databaseWarnings, validateDatabase } from "./database.ts";
export { applyDefaults, type DefaultsOptions } from "./defaults.ts";
export { type FieldIssue, formatFieldIssue, formatRefusal, type IssueKind } from "./field-issue.ts";
export { validateObjectStore } from "./object-store.ts";
export { poolerWarnings, validatePooler } from "./pooler.ts";
export type { AdmissionContext, AdmissionSettings } from "./settings.ts";
export { clusterUpdateWarnings, clusterWarnings } from "./warnings.ts";
