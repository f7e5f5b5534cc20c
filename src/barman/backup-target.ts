import type { Cluster } from "../api/generated/cluster.ts";
import { parseLsn } from "../postgres/lsn.ts";
import type { BackupTarget } from "./backup-choice.ts";

type RecoveryTarget = NonNullable<NonNullable<NonNullable<Cluster["spec"]["bootstrap"]>["recovery"]>["recoveryTarget"]>;

/** What a Cluster's recovery target says about the base backup to take; throws naming the field that cannot be read. */
export function parseBackupTarget(target: RecoveryTarget | undefined): BackupTarget {
  const { backupID, targetTime, targetLSN, targetTLI } = target ?? {};
  const result: BackupTarget = {};
  if (backupID) result.backupId = backupID;
  if (targetTime) result.timeMicros = parseTargetTime(targetTime) ?? refuse("targetTime", targetTime, "a time");
  if (targetLSN) result.lsn = parseLsn(targetLSN) ?? refuse("targetLSN", targetLSN, "a position such as 0/3000028");
  if (targetTLI) result.timeline = parseTimeline(targetTLI) ?? refuse("targetTLI", targetTLI, "a timeline");
  return result;
}

const timePattern = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?\s*(Z|[+-]\d\d(?::?\d\d)?)?$/i;

/** Microseconds since the epoch of a target time; one without a zone is read as UTC. `undefined` for other text. */
export function parseTargetTime(text: string): number | undefined {
  const match = timePattern.exec(text.trim());
  if (!match) return undefined;
  const [, day, time, fraction = "", zone = "Z"] = match;
  const digits = zone.slice(1).replace(":", "").padEnd(4, "0");
  const offset = /^z$/i.test(zone) ? "Z" : `${zone.charAt(0)}${digits.slice(0, 2)}:${digits.slice(2)}`;
  const ms = Date.parse(`${day}T${time}${offset}`);
  return Number.isNaN(ms) ? undefined : ms * 1000 + Number(fraction.padEnd(6, "0").slice(0, 6));
}

function parseTimeline(text: string): number | "latest" | "current" | undefined {
  if (text === "latest" || text === "current") return text;
  const timeline = /^(0x)?[0-9a-f]+$/i.test(text) ? Number(text) : Number.NaN;
  return Number.isInteger(timeline) && timeline > 0 ? timeline : undefined;
}

function refuse(field: string, value: string, wanted: string): never {
  throw new Error(`recoveryTarget.${field} is ${JSON.stringify(value)}, which is not ${wanted}`);
}
