// Decisions of the archiver (safety: acknowledged means confirmed by the store and recorded). No step here touches a file
// or the store: the engine reads, asks, and does what it is told.
import { switchPointOf, type TimelineSwitch } from "../postgres/timeline-history.ts";
import { parseWalFileName, walSegmentEnd } from "../postgres/wal-name.ts";
import type { ArchiveRecord, FileIdentity } from "./archive-record.ts";
import { parseArchivedWal } from "./wal-names.ts";

export type ArchiveDecision =
  | { kind: "acknowledged"; reason: string }
  /** The file's bytes must be hashed before the record can speak for it. */
  | { kind: "hash"; reason: string }
  | { kind: "upload"; discardRecord: boolean; reason: string };

/** Decides what a request for a file needs, given the record of an earlier upload. */
export function decideArchiveRequest(
  record: ArchiveRecord | undefined,
  file: FileIdentity,
  context: { name: string; target: string; systemId: string | undefined },
): ArchiveDecision {
  if (!record) return { kind: "upload", discardRecord: false, reason: "no record of it" };
  if (record.name !== context.name) return discard(`the record is of ${record.name}`);
  if (record.target !== context.target) return discard("the record is of another archive");
  if (context.systemId !== undefined && record.systemId !== context.systemId) {
    return discard(`the record is of system ${record.systemId}`);
  }
  if (record.size !== file.size) return discard("the file has another size than the recorded one");
  const same = record.inode === file.inode && record.mtimeNs === file.mtimeNs;
  if (same) return { kind: "acknowledged", reason: "recorded as archived" };
  return { kind: "hash", reason: "the file was touched since it was recorded" };
}

/** Decides the request after hashing. */
export function decideHashedRequest(record: ArchiveRecord, sha256: string): ArchiveDecision {
  if (record.sha256 === sha256) return { kind: "acknowledged", reason: "recorded as archived, with the same bytes" };
  return discard("the file holds other bytes than the recorded ones");
}

/** An object that a listing of the file's name showed. */
export interface ExistingObject {
  /** Last part of its key. */
  objectName: string;
  /** SHA-256 of the uncompressed bytes, when the object carries it. */
  sha256?: string | undefined;
}

export type ExistingDecision =
  | { kind: "absent" }
  | { kind: "same"; objectName: string }
  /** The object's bytes must be read and compared. */
  | { kind: "compare"; objectName: string }
  | { kind: "different"; objectName: string };

/** Decides what objects of the same WAL name mean for an upload, whatever their compression. Nothing is ever overwritten. */
export function decideExisting(name: string, sha256: string, objects: readonly ExistingObject[]): ExistingDecision {
  const same = objects.filter(({ objectName }) => parseArchivedWal(objectName)?.name === name);
  const known = same.filter((object) => object.sha256 !== undefined);
  const other = known.find((object) => object.sha256 !== sha256);
  if (other) return { kind: "different", objectName: other.objectName };
  const unknown = same.find((object) => object.sha256 === undefined);
  if (unknown) return { kind: "compare", objectName: unknown.objectName };
  const [equal] = known;
  return equal ? { kind: "same", objectName: equal.objectName } : { kind: "absent" };
}

/** Whether the archive counts as empty for a cluster that must start with an empty one. */
export type EmptyDecision =
  | { kind: "empty" }
  /** Each of these must be shown to be this system's own bytes, file by file; then the archive counts as empty. */
  | { kind: "compare"; objectNames: readonly string[] }
  | { kind: "filled"; objectName: string };

/** More objects than a first lane can have left behind are not compared. */
const mostOwnObjects = 8;

/** Decides from the object names below `wals/` and the WAL files that are still here. */
export function decideEmptyArchive(objectNames: readonly string[], localFiles: ReadonlySet<string>): EmptyDecision {
  const wal = objectNames.filter((name) => parseArchivedWal(name) !== undefined);
  const [first] = wal;
  if (first === undefined) return { kind: "empty" };
  const foreign = wal.find((name) => !localFiles.has(parseArchivedWal(name)?.name ?? ""));
  if (foreign !== undefined) return { kind: "filled", objectName: foreign };
  return wal.length > mostOwnObjects ? { kind: "filled", objectName: first } : { kind: "compare", objectNames: wal };
}

/** Where a former primary's log left the timeline that lives on. */
export interface DrainLimit {
  /** History of the timeline that lives on. */
  history: readonly TimelineSwitch[];
  segmentBytes: number;
}

/** Why a former primary must not upload a file; null when it may: only whole segments before the switch point are common to both. */
export function checkDrain(name: string, limit: DrainLimit): string | null {
  const parsed = parseWalFileName(name);
  if (!parsed) return `${name} is not the name of a WAL file`;
  const left = switchPointOf(limit.history, parsed.timeline);
  if (left === undefined) return `timeline ${parsed.timeline} is no ancestor of the one that lives on`;
  if (parsed.kind === "history") return null;
  if (parsed.kind === "partial") return `${name} was not finished before the switch`;
  const end = walSegmentEnd(parsed, limit.segmentBytes);
  return end <= left ? null : `${name} ends after the timeline was left`;
}

function discard(reason: string): ArchiveDecision {
  return { kind: "upload", discardRecord: true, reason };
}
