/** What tells one state of a file from another without reading it. */
export interface FileIdentity {
  size: number;
  inode: string;
  /** Nanoseconds since the epoch, decimal. */
  mtimeNs: string;
}

/** Proof that the store confirmed a file's bytes. It is fsynced before anybody is told that the file is archived. */
export interface ArchiveRecord extends FileIdentity {
  systemId: string;
  /** WAL file name. */
  name: string;
  /** SHA-256 of the uncompressed bytes, hexadecimal. */
  sha256: string;
  /** Which archive: `archiveTarget` of destination, endpoint and server name. */
  target: string;
  /** Full key of the object. */
  key: string;
  /** What the store confirmed, for example `md5:…`. */
  checksum: string;
}

const fields = ["systemId", "name", "size", "inode", "mtimeNs", "sha256", "target", "key", "checksum"] as const;

/** Writes a record as the one line of its file. */
export function formatArchiveRecord(record: ArchiveRecord): string {
  const ordered = Object.fromEntries(fields.map((field) => [field, record[field]]));
  return `${JSON.stringify({ format: 1, ...ordered })}\n`;
}

/** Reads a record's file; undefined for anything else, a half-written line included: then there is no record. */
export function parseArchiveRecord(text: string): ArchiveRecord | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const found = value as Record<string, unknown>;
  if (found["format"] !== 1) return undefined;
  const complete = fields.every((field) => typeof found[field] === (field === "size" ? "number" : "string"));
  return complete
    ? (Object.fromEntries(fields.map((field) => [field, found[field]])) as unknown as ArchiveRecord)
    : undefined;
}
