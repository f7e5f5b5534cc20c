import { createHash } from "node:crypto";

/** Longest value of a label, and longest name of an object, in characters. */
const labelLimit = 63;
const nameLimit = 253;

/** Value of the label by which the children of a ScheduledBackup are found: its name, cut where a label can't hold it. */
export function scheduleLabel(scheduledBackup: string): string {
  return shorten(scheduledBackup, labelLimit);
}

/** Name of the Backup that a ScheduledBackup makes for a time, in UTC. */
export function scheduledBackupName(scheduledBackup: string, slot: Date): string {
  const time = slot.toISOString().slice(0, 19).replaceAll(/\D/g, "");
  return `${shorten(scheduledBackup, nameLimit - time.length - 1)}-${time}`;
}

/** A text that is short enough stays as it is; of a longer one the beginning and a hash of the whole, so that two never meet. */
function shorten(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const hash = createHash("sha256").update(text).digest("hex").slice(0, 8);
  return `${text.slice(0, limit - hash.length - 1).replace(/[^a-z0-9]+$/i, "")}-${hash}`;
}
