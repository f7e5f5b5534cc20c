/** Phases of a Backup (reference: backups §4.2). */
export const backupPhases = {
  pending: "pending",
  started: "started",
  running: "running",
  finalizing: "finalizing",
  completed: "completed",
  failed: "failed",
  walArchivingFailing: "walArchivingFailing",
  invalid: "invalid backup definition",
} as const;

/** Whether nothing will happen to a Backup in this phase any more. */
export function isBackupDone(phase: string | undefined): boolean {
  return phase === backupPhases.completed || phase === backupPhases.failed;
}

/** Whether a pod has a Backup in this phase in its hands: it takes it, or waits for the archive before it does. */
export function isBackupExecuting(phase: string | undefined): boolean {
  return phase === backupPhases.started || phase === backupPhases.running || phase === backupPhases.walArchivingFailing;
}

/** Label keys of Backups that a ScheduledBackup made. */
export const scheduledBackupLabels = {
  scheduledBackup: "cnpg.io/scheduled-backup",
  immediate: "cnpg.io/immediateBackup",
} as const;
