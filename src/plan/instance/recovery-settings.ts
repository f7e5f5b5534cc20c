// What PostgreSQL is told of the point up to which a new cluster recovers (reference: backup §7.1).
import type { Cluster } from "../../api/generated/cluster.ts";
import { parseTargetTime } from "../../barman/backup-target.ts";

export type RecoveryTarget = NonNullable<
  NonNullable<NonNullable<Cluster["spec"]["bootstrap"]>["recovery"]>["recoveryTarget"]
>;

/** The settings of a recovery target; empty without one. Whether the named transaction counts is always written. */
export function recoveryTargetSettings(target: RecoveryTarget | undefined): Map<string, string> {
  const settings = new Map<string, string>();
  if (!target) return settings;
  const put = (name: string, value: string | undefined) => value && settings.set(name, value);
  put("recovery_target_time", target.targetTime && formatTargetTime(target.targetTime));
  put("recovery_target_xid", target.targetXID);
  put("recovery_target_name", target.targetName);
  put("recovery_target_lsn", target.targetLSN);
  put("recovery_target", target.targetImmediate ? "immediate" : undefined);
  put("recovery_target_timeline", target.targetTLI);
  settings.set("recovery_target_inclusive", target.exclusive ? "false" : "true");
  return settings;
}

/** A time as UTC with microseconds. One without a zone means UTC to PostgreSQL too, as it did when the backup was chosen by it. */
export function formatTargetTime(text: string): string {
  const micros = parseTargetTime(text);
  if (micros === undefined) return text;
  const seconds = new Date(Math.floor(micros / 1_000_000) * 1000).toISOString().slice(0, 19).replace("T", " ");
  const fraction = String(((micros % 1_000_000) + 1_000_000) % 1_000_000).padStart(6, "0");
  return `${seconds}.${fraction}+00:00`;
}
