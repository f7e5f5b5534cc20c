import { parseWalFileName, type WalFileName } from "../postgres/wal-name.ts";
import { type CompressionName, splitCompressionSuffix } from "./compression.ts";

/** A WAL file as an object's name tells it. */
export interface ArchivedWal {
  /** Name as PostgreSQL knows it, in upper case. */
  name: string;
  kind: WalFileName["kind"];
  timeline: number;
  compression: CompressionName | undefined;
}

/** The last part of an object's key, read; `undefined` when it is no WAL file. */
export function parseArchivedWal(objectName: string): ArchivedWal | undefined {
  const { bare, compression } = splitCompressionSuffix(objectName);
  const name = normalizeWalName(bare);
  const parsed = name === undefined ? undefined : parseWalFileName(name);
  if (name === undefined || !parsed) return undefined;
  return { name, kind: parsed.kind, timeline: parsed.timeline, compression };
}

/** The name in the case PostgreSQL writes; `undefined` when it is no name of a WAL file. Hex digits of either case are accepted. */
export function normalizeWalName(name: string): string | undefined {
  const match = /^([0-9a-f]{8}(?:[0-9a-f]{16})?)(?:\.(?:(history|partial)|([0-9a-f]{8})\.(backup)))?$/i.exec(name);
  if (!match) return undefined;
  const stem = (match[1] ?? "").toUpperCase();
  const tail = match[2] ?? match[4];
  // The words must be in lower case: PostgreSQL never writes them otherwise.
  if (tail !== undefined && tail !== tail.toLowerCase()) return undefined;
  const written = match[3] ? `${stem}.${match[3].toUpperCase()}.backup` : match[2] ? `${stem}.${match[2]}` : stem;
  return parseWalFileName(written) ? written : undefined;
}

/** Among objects whose name begins with a requested name: those that may answer the request, best first. */
export function rankRestoreCandidates(
  requested: string,
  objectNames: readonly string[],
  options: { partial: boolean } = { partial: true },
): { objectName: string; wal: ArchivedWal }[] {
  const wanted = normalizeWalName(requested);
  const candidates = objectNames.flatMap((objectName) => {
    const wal = parseArchivedWal(objectName);
    if (!wal || wanted === undefined || wal.kind === "backupLabel") return [];
    const whole = wal.name === wanted;
    const partial = options.partial && wal.name === `${wanted}.partial`;
    return whole || partial ? [{ objectName, wal }] : [];
  });
  // A complete file always wins, whatever the suffixes sort like.
  return candidates.sort((a, b) => rank(a.wal, wanted) - rank(b.wal, wanted));
}

function rank(wal: ArchivedWal, wanted: string | undefined): number {
  return wal.name === wanted ? 0 : 1;
}
