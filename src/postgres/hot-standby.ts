import type { Settings } from "./configuration.ts";
import type { ControlData } from "./control-data.ts";

/** The settings that a standby must not have lower than its primary, with PostgreSQL's own defaults. */
export const hotStandbyDefaults = {
  max_connections: 100,
  max_locks_per_transaction: 64,
  max_prepared_transactions: 0,
  max_wal_senders: 10,
  max_worker_processes: 8,
} as const;

export type HotStandbyParameter = keyof typeof hotStandbyDefaults;
export type HotStandbyValues = Partial<Record<HotStandbyParameter, number>>;

/** Names in a stable order. */
export const hotStandbyParameters = Object.keys(hotStandbyDefaults) as HotStandbyParameter[];

/** Values the control file holds above the settings, so that a lowered specification cannot stop a standby from starting. */
export function raiseHotStandbyValues(settings: Settings, control: ControlData): Record<string, string> {
  const raised: Record<string, string> = {};
  for (const name of hotStandbyParameters) {
    const recorded = control.hotStandby[name];
    if (recorded === undefined) continue;
    if (recorded > effectiveValue(settings, name)) raised[name] = String(recorded);
  }
  return raised;
}

/** One row that joins `pg_settings` (pending restart) with `pg_file_settings`; values are text as PostgreSQL gives them. */
export interface PendingSetting {
  name: string;
  running: string;
  file: string;
}

/** Hot-standby settings whose file value is below the running one. */
export function findDecreases(pending: readonly PendingSetting[]): HotStandbyParameter[] {
  return pending.flatMap(({ name, running, file }) => {
    const parameter = hotStandbyParameters.find((candidate) => candidate === name);
    return parameter !== undefined && toInteger(file) < toInteger(running) ? [parameter] : [];
  });
}

/**
 * Whether a replica may now restart with the lower values: its control file shows them already, because the primary has
 * restarted and its change was replayed. `false` while a value is unknown.
 */
export function canLowerOnReplica(decreases: readonly PendingSetting[], control: ControlData): boolean {
  return decreases.every(({ name, file }) => {
    const recorded = control.hotStandby[name as HotStandbyParameter];
    return recorded !== undefined && recorded <= toInteger(file);
  });
}

function effectiveValue(settings: Settings, name: HotStandbyParameter): number {
  const value = settings.get(name);
  return value === undefined ? hotStandbyDefaults[name] : toInteger(value);
}

/** PostgreSQL takes integers in decimal, hexadecimal and octal; text it would refuse counts as "no decrease". */
function toInteger(text: string): number {
  const trimmed = text.trim();
  if (/^[-+]?0x[0-9a-f]+$/i.test(trimmed)) return Number(trimmed);
  if (/^[-+]?0[0-7]+$/.test(trimmed)) return Number.parseInt(trimmed, 8);
  return Number(trimmed);
}
