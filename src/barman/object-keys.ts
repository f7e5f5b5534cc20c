import { type CompressionName, compressionSuffix } from "./compression.ts";
import { normalizeWalName } from "./wal-names.ts";

/** Backup IDs look like this: local wall clock of the start, `20260501T101112`. */
export const backupIdPattern = /^\d{8}T\d{6}$/;

/** Keys of one server inside a destination; none begins with a slash. */
export interface ServerKeys {
  /** `PATH/SERVER/`, or `SERVER/` in the root. */
  readonly prefix: string;
  readonly basePrefix: string;
  readonly walsPrefix: string;
  /** Key of a WAL file; throws for a name that is none. */
  wal(name: string, compression?: CompressionName): string;
  /** Prefix of the folder that holds the segments of one timeline and log number, given any segment of it. */
  walFolder(name: string): string;
  backupFolder(id: string): string;
  backupInfo(id: string): string;
  /** Where a keep annotation is written. */
  keep(id: string): string;
  /** Where keep annotations may be found: Barman writes a doubled slash when the destination ends with one. */
  keepSpellings(id: string): readonly string[];
  /** Key of a base archive: `data` or a tablespace's OID, and the number of the part (0 first). */
  tar(id: string, name: string, part: number, compression?: CompressionName): string;
}

/** Builds the keys of `serverName` under a destination's path. */
export function serverKeys(path: string, serverName: string): ServerKeys {
  if (serverName === "") throw new Error("the server name is empty: it names the folder of one cluster in the archive");
  const root = path.replace(/^\/+/, "").replace(/\/+$/, "");
  const prefix = root === "" ? `${serverName}/` : `${root}/${serverName}/`;
  const basePrefix = `${prefix}base/`;
  const walsPrefix = `${prefix}wals/`;
  const keepTail = (id: string) => `${serverName}/base/${id}/annotations/keep`;
  return {
    prefix,
    basePrefix,
    walsPrefix,
    wal: (name, compression) => `${walFolder(walsPrefix, name)}${walName(name)}${compressionSuffix(compression)}`,
    walFolder: (name) => walFolder(walsPrefix, name),
    backupFolder: (id) => `${basePrefix}${id}/`,
    backupInfo: (id) => `${basePrefix}${id}/backup.info`,
    keep: (id) => `${basePrefix}${id}/annotations/keep`,
    keepSpellings: (id) => [`${basePrefix}${id}/annotations/keep`, `${root === "" ? "" : root}//${keepTail(id)}`],
    tar: (id, name, part, compression) => {
      const number = part === 0 ? "" : `_${String(part).padStart(4, "0")}`;
      return `${basePrefix}${id}/${name}${number}.tar${compressionSuffix(compression)}`;
    },
  };
}

/** Parts of a base archive's name; `undefined` for names of other files. */
export function parseTarName(fileName: string): { name: string; part: number; suffix: string } | undefined {
  const match = /^(data|\d+)(?:_(\d{4,}))?\.tar((?:\.[a-z0-9]+)?)$/.exec(fileName);
  if (!match) return undefined;
  return { name: match[1] ?? "", part: Number(match[2] ?? 0), suffix: match[3] ?? "" };
}

/** ID of a backup that begins at this moment, for a machine whose clock runs in UTC. */
export function formatBackupId(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(0, 19).replaceAll("-", "").replaceAll(":", "");
}

const reservedNames = ["latest", "last", "oldest", "first", "last-failed", "latest-full", "last-full", "auto"];

/** Why a backup may not have this name; null when it may. */
export function checkBackupName(name: string): string | null {
  if (name === "") return "a backup's name must not be empty";
  if (backupIdPattern.test(name)) return `a backup's name must not look like a backup ID: ${name}`;
  return reservedNames.includes(name) ? `${name} is a word with a meaning of its own, not a backup's name` : null;
}

function walName(name: string): string {
  if (normalizeWalName(name) === undefined) throw new Error(`${JSON.stringify(name)} is not the name of a WAL file`);
  return name;
}

function walFolder(walsPrefix: string, name: string): string {
  const known = walName(name);
  return known.endsWith(".history") ? walsPrefix : `${walsPrefix}${known.slice(0, 16)}/`;
}
