import { formatLsn, type Lsn, parseLsn } from "../postgres/lsn.ts";
import { type BarmanTime, formatBarmanTime, parseBarmanTime } from "./barman-time.ts";
import { formatPythonLiteral, formatPythonString, type PythonValue, parsePythonLiteral } from "./python-literal.ts";

export const backupStatuses = ["EMPTY", "STARTED", "WAITING_FOR_WALS", "DONE", "SYNCING", "FAILED"] as const;
export type BackupInfoStatus = (typeof backupStatuses)[number];

export interface BackupTablespace {
  name: string;
  oid: number;
  location: string;
}

/** The contents of a `backup.info`. Null stands for Barman's `None`. */
export interface BackupInfo {
  backupLabel: string | null;
  /** Left out of the file when null. */
  backupName: string | null;
  beginOffset: number | null;
  beginTime: BarmanTime | null;
  beginWal: string | null;
  beginXlog: Lsn | null;
  childrenBackupIds: readonly string[] | null;
  clusterSize: number | null;
  compression: string | null;
  configFile: string | null;
  copyStats: PythonValue | null;
  dataChecksums: string | null;
  deduplicatedSize: number | null;
  encryption: string | null;
  endOffset: number | null;
  endTime: BarmanTime | null;
  endWal: string | null;
  endXlog: Lsn | null;
  error: string | null;
  hbaFile: string | null;
  identFile: string | null;
  includedFiles: readonly string[] | null;
  mode: string | null;
  parentBackupId: string | null;
  pgdata: string | null;
  serverName: string | null;
  size: number | null;
  /** Left out of the file when null; only backups by disk snapshots have it. */
  snapshotsInfo: PythonValue | null;
  status: BackupInfoStatus;
  summarizeWal: string | null;
  systemid: string | null;
  tablespaces: readonly BackupTablespace[] | null;
  timeline: number | null;
  version: number | null;
  /** Bytes. @default 16777216 when the file has none */
  xlogSegmentSize: number;
}

/** How one value is read and written; `read` throws a reason for text it cannot take. */
interface Field<T> {
  read(text: string): T;
  write(value: T): string;
}

const text: Field<string> = { read: (value) => value, write: (value) => value };
const integer: Field<number> = { read: readInteger, write: String };
const lsn: Field<Lsn> = { read: (value) => must(parseLsn(value), "an LSN"), write: formatLsn };
const time: Field<BarmanTime> = { read: (value) => must(parseBarmanTime(value), "a time"), write: formatBarmanTime };
const literal: Field<PythonValue> = { read: parsePythonLiteral, write: formatPythonLiteral };
const quoted: Field<string> = { read: readQuoted, write: formatPythonString };
const commaList: Field<readonly string[]> = { read: (value) => value.split(","), write: (value) => value.join(",") };
const strings: Field<readonly string[]> = { read: readStrings, write: writeStrings };
const tablespaces: Field<readonly BackupTablespace[]> = { read: readTablespaces, write: writeTablespaces };
const status: Field<BackupInfoStatus> = {
  read: (value) =>
    must(
      backupStatuses.find((known) => known === value),
      `one of ${backupStatuses.join(", ")}`,
    ),
  write: (value) => value,
};

type Fields = { [K in keyof BackupInfo]-?: Field<NonNullable<BackupInfo[K]>> };

const fields: Fields = {
  backupLabel: quoted,
  backupName: text,
  beginOffset: integer,
  beginTime: time,
  beginWal: text,
  beginXlog: lsn,
  childrenBackupIds: commaList,
  clusterSize: integer,
  compression: text,
  configFile: text,
  copyStats: literal,
  dataChecksums: text,
  deduplicatedSize: integer,
  encryption: text,
  endOffset: integer,
  endTime: time,
  endWal: text,
  endXlog: lsn,
  error: text,
  hbaFile: text,
  identFile: text,
  includedFiles: strings,
  mode: text,
  parentBackupId: text,
  pgdata: text,
  serverName: text,
  size: integer,
  snapshotsInfo: literal,
  status,
  summarizeWal: text,
  systemid: text,
  tablespaces,
  timeline: integer,
  version: integer,
  xlogSegmentSize: integer,
};

/** Keys in the order of the file, which is alphabetical in snake case. */
const order = (Object.keys(fields) as (keyof BackupInfo)[])
  .map((name) => ({ name, key: name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`) }))
  .sort((a, b) => (a.key < b.key ? -1 : 1));
const nameOfKey = new Map(order.map(({ name, key }) => [key, name]));
const leftOutWhenNull: ReadonlySet<keyof BackupInfo> = new Set(["backupName", "snapshotsInfo"]);

/** What a `backup.info` holds right after its making: every value unknown. */
export const emptyBackupInfo: BackupInfo = {
  ...(Object.fromEntries(order.map(({ name }) => [name, null])) as unknown as BackupInfo),
  status: "EMPTY",
  xlogSegmentSize: 16_777_216,
};

/**
 * Reads a `backup.info`. Keys that are not known are passed over, so that a file of a newer Barman stays readable; a line
 * without `=` or a value that is not of its type makes the file unreadable, which the thrown message explains.
 */
export function parseBackupInfo(content: string): BackupInfo {
  const info = { ...emptyBackupInfo };
  let hasStatus = false;
  for (const [index, line] of content.split("\n").entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const at = line.indexOf("=");
    if (at < 0) throw new Error(`line ${index + 1} of backup.info has no "="`);
    const key = line.slice(0, at).trim();
    const value = line.slice(at + 1).trim();
    const name = nameOfKey.get(key);
    if (name === undefined || value === "None") continue;
    hasStatus ||= name === "status";
    try {
      assign(info, name, value);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new Error(`${key} in line ${index + 1} of backup.info: ${reason}`);
    }
  }
  if (!hasStatus) throw new Error("backup.info has no status");
  return info;
}

/** Writes a `backup.info` byte by byte as Barman does. */
export function formatBackupInfo(info: BackupInfo): string {
  return order.map(({ name, key }) => formatLine(info, name, key)).join("");
}

function assign<K extends keyof BackupInfo>(info: BackupInfo, name: K, value: string): void {
  info[name] = fields[name].read(value) as BackupInfo[K];
}

function formatLine<K extends keyof BackupInfo>(info: BackupInfo, name: K, key: string): string {
  const value = info[name];
  if (value === null || value === undefined) return leftOutWhenNull.has(name) ? "" : `${key}=None\n`;
  const field = fields[name] as Field<NonNullable<BackupInfo[K]>>;
  const line = field.write(value as NonNullable<BackupInfo[K]>);
  if (/[\r\n]/.test(line)) throw new Error(`${key} of backup.info must be a single line`);
  return `${key}=${line}\n`;
}

function must<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`not ${what}`);
  return value;
}

function readInteger(value: string): number {
  const number = Number(value);
  if (!/^-?\d+$/.test(value) || !Number.isSafeInteger(number)) throw new Error("not an integer");
  return number;
}

function readQuoted(value: string): string {
  const parsed = parsePythonLiteral(value);
  if (parsed.kind !== "string") throw new Error("not a quoted string");
  return parsed.value;
}

function readStrings(value: string): string[] {
  return items(parsePythonLiteral(value)).map(asString);
}

function writeStrings(values: readonly string[]): string {
  return formatPythonLiteral({ kind: "list", items: values.map((value) => ({ kind: "string", value })) });
}

function readTablespaces(value: string): BackupTablespace[] {
  return items(parsePythonLiteral(value)).map((item) => {
    const [name, oid, location] = items(item);
    if (!name || oid?.kind !== "int" || !location) throw new Error("not a list of (name, oid, location)");
    return { name: asString(name), oid: readInteger(oid.text), location: asString(location) };
  });
}

function writeTablespaces(values: readonly BackupTablespace[]): string {
  const tuples = values.map(({ name, oid, location }): PythonValue => {
    const parts: PythonValue[] = [
      { kind: "string", value: name },
      { kind: "int", text: String(oid) },
      { kind: "string", value: location },
    ];
    return { kind: "tuple", items: parts };
  });
  return formatPythonLiteral({ kind: "list", items: tuples });
}

function items(value: PythonValue): PythonValue[] {
  if (value.kind !== "list" && value.kind !== "tuple") throw new Error("not a list");
  return value.items;
}

function asString(value: PythonValue): string {
  if (value.kind !== "string") throw new Error("not a string");
  return value.value;
}
