import type { HotStandbyValues } from "./hot-standby.ts";

/** What `pg_controldata` tells; a value it did not print is absent. */
export interface ControlData {
  /** Every line by its title, as printed. */
  fields: ReadonlyMap<string, string>;
  systemId?: string;
  /** For example `in production`, `shut down`, `in archive recovery`. */
  state?: string;
  checkpointLsn?: string;
  redoLsn?: string;
  redoWalFile?: string;
  timeline?: number;
  checkpointTime?: string;
  minimumRecoveryLsn?: string;
  walLevel?: string;
  walSegmentBytes?: number;
  /** False when the checksum version is 0. */
  dataChecksums?: boolean;
  controlVersion?: number;
  catalogVersion?: number;
  hotStandby: HotStandbyValues;
}

/** States in which the server was stopped in order. */
export const shutDownStates: readonly string[] = ["shut down", "shut down in recovery"];

/** Reads the output of `pg_controldata` run with `LC_ALL=C`. */
export function parseControlData(text: string): ControlData {
  const fields = new Map<string, string>();
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) fields.set(line.slice(0, colon).trim(), line.slice(colon + 1).trim());
  }
  const string = (title: string) => fields.get(title) || undefined;
  const number = (title: string) => toNumber(fields.get(title));
  const checksumVersion = number("Data page checksum version");
  return {
    fields,
    ...present({
      systemId: string("Database system identifier"),
      state: string("Database cluster state"),
      checkpointLsn: string("Latest checkpoint location"),
      redoLsn: string("Latest checkpoint's REDO location"),
      redoWalFile: string("Latest checkpoint's REDO WAL file"),
      timeline: number("Latest checkpoint's TimeLineID"),
      checkpointTime: string("Time of latest checkpoint"),
      minimumRecoveryLsn: string("Minimum recovery ending location"),
      walLevel: string("wal_level setting"),
      walSegmentBytes: number("Bytes per WAL segment"),
      dataChecksums: checksumVersion === undefined ? undefined : checksumVersion !== 0,
      controlVersion: number("pg_control version number"),
      catalogVersion: number("Catalog version number"),
    }),
    hotStandby: present({
      max_connections: number("max_connections setting"),
      max_locks_per_transaction: number("max_locks_per_xact setting"),
      max_prepared_transactions: number("max_prepared_xacts setting"),
      max_wal_senders: number("max_wal_senders setting"),
      max_worker_processes: number("max_worker_processes setting"),
    }),
  };
}

function toNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
}

type Present<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

function present<T extends object>(value: T): Present<T> {
  return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== undefined)) as Present<T>;
}
