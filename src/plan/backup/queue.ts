import { backupPhases, isBackupDone, isBackupExecuting } from "../../api/backup-phases.ts";
import type { Backup } from "../../api/generated/backup.ts";
import { annotations } from "../../api/labels.ts";

/**
 * The Backup of the same cluster that has to end before this one may start; backups of one cluster are taken one by one,
 * the oldest first. One that nothing happens to by itself keeps nobody waiting: a wrong definition, one that a person holds back.
 */
export function findPredecessor(backup: Backup, all: readonly Backup[]): Backup | undefined {
  const others = all.filter(
    (it) => it.spec.cluster.name === backup.spec.cluster.name && it.metadata.uid !== backup.metadata.uid,
  );
  return (
    others.find((it) => isBackupExecuting(it.status?.phase)) ??
    others.find((it) => isWaiting(it) && compareAge(it, backup) < 0)
  );
}

function isWaiting({ status, metadata }: Backup): boolean {
  const phase = status?.phase;
  const isHeld = metadata.annotations?.[annotations.reconciliationLoop] === "disabled";
  return !isBackupDone(phase) && phase !== backupPhases.invalid && !metadata.deletionTimestamp && !isHeld;
}

function compareAge(a: Backup, b: Backup): number {
  const [first, second] = [a, b].map((it) => [it.metadata.creationTimestamp ?? "", it.metadata.name ?? ""].join(" "));
  return first === second ? 0 : (first ?? "") < (second ?? "") ? -1 : 1;
}
