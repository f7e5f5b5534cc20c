import type { Backup } from "../../api/generated/backup.ts";
import type { ScheduledBackup } from "../../api/generated/scheduledbackup.ts";
import { checkSchedule, countScheduleFields } from "./cron-syntax.ts";
import { type FieldIssue, formatFieldIssue, invalid } from "./field-issue.ts";
import { when } from "./rule.ts";
import { isValidationDisabled, validationWarnings } from "./warnings.ts";

/** What validation of backups needs to know of the Kubernetes cluster. */
export interface BackupAdmission {
  /** Whether the API server knows VolumeSnapshots. */
  volumeSnapshots: boolean;
}

const deadlineAnnotation = "cnpg.io/volumeSnapshotDeadline";

/** What is wrong with a Backup. */
export function validateBackup(backup: Backup, admission: BackupAdmission): FieldIssue[] {
  if (isValidationDisabled(backup)) return [];
  return [
    ...checkMethod(backup.spec, admission, "backup method"),
    ...checkPluginName(backup.spec),
    ...checkDeadline(backup),
  ];
}

/**
 * What is wrong with a ScheduledBackup. As in CloudNativePG it may be admitted although none of its Backups will be:
 * see {@link validateMadeBackups}.
 */
export function validateScheduledBackup(scheduled: ScheduledBackup, admission: BackupAdmission): FieldIssue[] {
  if (isValidationDisabled(scheduled)) return [];
  const problem = checkSchedule(scheduled.spec.schedule);
  return [
    ...when(problem !== null, invalid("spec.schedule", scheduled.spec.schedule, problem ?? "")),
    ...checkMethod(scheduled.spec, admission, "method"),
    ...checkDeadline(scheduled),
  ];
}

/** Why the Backups of a ScheduledBackup that is right by itself would be refused. */
export function validateMadeBackups(scheduled: ScheduledBackup): FieldIssue[] {
  return isValidationDisabled(scheduled) ? [] : checkPluginName(scheduled.spec);
}

/** Warnings about a Backup. */
export function backupWarnings(backup: Backup): string[] {
  return validationWarnings(backup);
}

/** Warnings about a ScheduledBackup. */
export function scheduledBackupWarnings(scheduled: ScheduledBackup): string[] {
  return [
    ...validationWarnings(scheduled),
    ...(countScheduleFields(scheduled.spec.schedule) === 5
      ? ["Schedule parameter may not have the right number of arguments (usually six arguments are needed)"]
      : []),
    ...validateMadeBackups(scheduled).map((issue) => `No backup will be made: ${formatFieldIssue(issue)}`),
  ];
}

function checkMethod(
  spec: Pick<Backup["spec"], "method" | "online" | "onlineConfiguration">,
  admission: BackupAdmission,
  wording: "method" | "backup method",
): FieldIssue[] {
  const method = spec.method ?? "barmanObjectStore";
  const onlySnapshots = `parameter can be specified only if the ${wording} is volumeSnapshot`;
  return [
    ...when(
      method === "volumeSnapshot" && !admission.volumeSnapshots,
      invalid(
        "spec.method",
        method,
        "Cannot use volumeSnapshot backup method due to missing VolumeSnapshot CRD. If you installed the CRD after " +
          "having started the operator, please restart it to enable VolumeSnapshot support",
      ),
    ),
    ...when(
      method === "barmanObjectStore" && spec.online !== undefined,
      invalid("spec.online", spec.online, `Online ${onlySnapshots}`),
    ),
    ...when(
      method === "barmanObjectStore" && spec.onlineConfiguration !== undefined,
      invalid("spec.onlineConfiguration", spec.onlineConfiguration, `OnlineConfiguration ${onlySnapshots}`),
    ),
  ];
}

function checkPluginName({ method, pluginConfiguration }: Backup["spec"] | ScheduledBackup["spec"]): FieldIssue[] {
  return when(
    method === "plugin" && !pluginConfiguration?.name,
    invalid(
      "spec.pluginConfiguration",
      pluginConfiguration ?? null,
      "cannot be empty when the backup method is plugin",
    ),
  );
}

function checkDeadline(object: { metadata: { annotations?: Record<string, string> } }): FieldIssue[] {
  const value = object.metadata.annotations?.[deadlineAnnotation];
  return when(
    value !== undefined && !/^[+-]?\d+$/.test(value),
    invalid(`metadata.annotations.${deadlineAnnotation}`, value, "must be an integer"),
  );
}
