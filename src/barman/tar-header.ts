// The headers of tar archives: POSIX pax as base backups are written, and every common form when they are read.

export const tarBlockBytes = 512;
/** An archive is filled up with zeros to a multiple of this. */
export const tarRecordBytes = 10_240;

/** One entry of an archive; `size` counts the bytes that follow its header. */
export interface TarEntry {
  name: string;
  kind: "file" | "directory" | "symlink" | "hardlink";
  mode: number;
  uid: number;
  gid: number;
  size: number;
  /** Nanoseconds since the epoch. */
  mtimeNs: bigint;
  /** Target of a link, else empty. */
  linkName: string;
}

/** A header block as it was read. Long names and extended values come in blocks of their own before it. */
export interface TarHeader {
  name: string;
  linkName: string;
  mode: number;
  uid: number;
  gid: number;
  size: number;
  /** Seconds since the epoch. */
  mtime: number;
  /** The type as written; `0` for the oldest archives' NUL. */
  type: string;
}

const types = { file: "0", hardlink: "1", symlink: "2", directory: "5" } as const;
const nanosPerSecond = 1_000_000_000n;
const largestOctal12 = 0o77777777777;
const largestOctal8 = 0o7777777;

/** Writes an entry's header: one block, with an extended header before it where the block cannot hold a value. */
export function formatTarHeader(entry: TarEntry): Uint8Array {
  const records: [string, string][] = [];
  const name = entry.kind === "directory" && !entry.name.endsWith("/") ? `${entry.name}/` : entry.name;
  if (!fits(name, 100)) records.push(["path", name]);
  if (!fits(entry.linkName, 100)) records.push(["linkpath", entry.linkName]);
  if (entry.size > largestOctal12) records.push(["size", String(entry.size)]);
  if (entry.uid > largestOctal8) records.push(["uid", String(entry.uid)]);
  if (entry.gid > largestOctal8) records.push(["gid", String(entry.gid)]);
  const seconds = floorSeconds(entry.mtimeNs);
  const fraction = entry.mtimeNs - seconds * nanosPerSecond;
  const mtime = Number(seconds);
  if (fraction !== 0n || mtime < 0) records.push(["mtime", formatSeconds(entry.mtimeNs)]);
  const block = headerBlock({
    name: shorten(name),
    linkName: shorten(entry.linkName),
    mode: entry.mode & 0o7777,
    uid: entry.uid > largestOctal8 ? 0 : entry.uid,
    gid: entry.gid > largestOctal8 ? 0 : entry.gid,
    size: entry.size > largestOctal12 ? 0 : entry.size,
    mtime: Math.max(0, mtime),
    type: types[entry.kind],
  });
  return records.length === 0 ? block : Buffer.concat([extendedHeader(records), block]);
}

/** Zeros between the end of an entry's bytes and the next header. */
export function tarPadding(size: number): number {
  return (tarBlockBytes - (size % tarBlockBytes)) % tarBlockBytes;
}

/** What ends an archive of so many bytes: two empty blocks at least, up to a whole record. */
export function tarEnd(written: number): Uint8Array {
  const least = written + 2 * tarBlockBytes;
  return new Uint8Array(Math.ceil(least / tarRecordBytes) * tarRecordBytes - written);
}

/** Reads a header block; `end` for an empty one, a reason for one that is damaged. */
export function parseTarHeader(block: Uint8Array): TarHeader | "end" | { error: string } {
  if (block.every((byte) => byte === 0)) return "end";
  const written = parseNumber(block, 148, 8);
  if (written === undefined || !checksums(block).includes(written)) return { error: "its checksum is wrong" };
  const numbers = {
    mode: parseNumber(block, 100, 8),
    uid: parseNumber(block, 108, 8),
    gid: parseNumber(block, 116, 8),
    size: parseNumber(block, 124, 12),
    mtime: parseNumber(block, 136, 12),
  };
  const { mode, uid, gid, size, mtime } = numbers;
  if (mode === undefined || uid === undefined || gid === undefined || size === undefined || mtime === undefined) {
    return { error: "it holds a number that is none" };
  }
  const type = block[156] === 0 ? "0" : String.fromCharCode(block[156] ?? 0);
  const name = parseText(block, 0, 100);
  // Only POSIX archives keep the first part of a long name here; GNU's keep times in its place.
  const prefix = parseText(block, 257, 6) === "ustar" ? parseText(block, 345, 155) : "";
  return {
    name: prefix === "" ? name : `${prefix}/${name}`,
    linkName: parseText(block, 157, 100),
    mode,
    uid,
    gid,
    size,
    mtime,
    type,
  };
}

/** Reads the records of an extended header; `undefined` when they are damaged. */
export function parsePaxRecords(data: Uint8Array): Map<string, string> | undefined {
  const records = new Map<string, string>();
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(0x20, at);
    const length = space < 0 ? Number.NaN : Number(bytes.toString("latin1", at, space));
    const end = at + length;
    if (!Number.isInteger(length) || length < 5 || end > bytes.length || bytes[end - 1] !== 0x0a) return undefined;
    const equals = bytes.indexOf(0x3d, space);
    if (equals < 0 || equals >= end) return undefined;
    records.set(bytes.toString("utf8", space + 1, equals), bytes.toString("utf8", equals + 1, end - 1));
    at = end;
  }
  return records;
}

/** Reads seconds with a fraction as nanoseconds; `undefined` for other text. */
export function parsePaxSeconds(text: string): bigint | undefined {
  const match = /^(-?)(\d+)(?:\.(\d*))?$/.exec(text);
  if (!match) return undefined;
  const size = BigInt(match[2] ?? 0) * nanosPerSecond + BigInt((match[3] ?? "").padEnd(9, "0").slice(0, 9));
  return match[1] === "-" ? -size : size;
}

function extendedHeader(records: readonly [string, string][]): Uint8Array {
  const data = Buffer.from(records.map(([key, value]) => paxRecord(key, value)).join(""));
  const block = headerBlock({
    name: "././@PaxHeader",
    linkName: "",
    mode: 0,
    uid: 0,
    gid: 0,
    size: data.length,
    mtime: 0,
    type: "x",
  });
  return Buffer.concat([block, data, new Uint8Array(tarPadding(data.length))]);
}

/** A record begins with its own length, which counts its own digits too. */
function paxRecord(key: string, value: string): string {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest + String(rest).length;
  if (rest + String(length).length !== length) length = rest + String(length).length;
  return `${length} ${key}=${value}\n`;
}

function headerBlock(header: TarHeader): Uint8Array {
  const block = Buffer.alloc(tarBlockBytes);
  block.write(header.name, 0, 100, "utf8");
  block.write(octal(header.mode, 8), 100, "latin1");
  block.write(octal(header.uid, 8), 108, "latin1");
  block.write(octal(header.gid, 8), 116, "latin1");
  block.write(octal(header.size, 12), 124, "latin1");
  block.write(octal(header.mtime, 12), 136, "latin1");
  block.write("        ", 148, "latin1");
  block.write(header.type, 156, "latin1");
  block.write(header.linkName, 157, 100, "utf8");
  block.write("ustar\u000000", 257, "latin1");
  block.write(octal(0, 8), 329, "latin1");
  block.write(octal(0, 8), 337, "latin1");
  block.write(`${checksums(block)[0].toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return block;
}

function octal(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, "0")}\0`;
}

/** The sum of the block's bytes, the field itself as blanks: of unsigned bytes, and of signed ones as old programs wrote it. */
function checksums(block: Uint8Array): [number, number] {
  let unsigned = 0;
  let signed = 0;
  for (let at = 0; at < tarBlockBytes; at++) {
    const byte = at >= 148 && at < 156 ? 0x20 : (block[at] ?? 0);
    unsigned += byte;
    signed += byte > 127 ? byte - 256 : byte;
  }
  return [unsigned, signed];
}

/** Octal text, or a binary number where the first bit is set. */
function parseNumber(block: Uint8Array, at: number, width: number): number | undefined {
  const first = block[at] ?? 0;
  if (first & 0x80) {
    let value = 0n;
    for (let index = 0; index < width; index++) {
      value = (value << 8n) | BigInt(index === 0 ? first & 0x7f : (block[at + index] ?? 0));
    }
    // All bits set before: a negative number, which only times can be.
    if (first === 0xff) value -= 1n << BigInt(8 * width - 1);
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : undefined;
  }
  const text = parseText(block, at, width).trim();
  if (text === "") return 0;
  return /^[0-7]+$/.test(text) ? Number.parseInt(text, 8) : undefined;
}

function parseText(block: Uint8Array, at: number, width: number): string {
  const field = Buffer.from(block.buffer, block.byteOffset + at, width);
  const end = field.indexOf(0);
  return field.toString("utf8", 0, end < 0 ? width : end);
}

function fits(text: string, bytes: number): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the range is that of ASCII
  return text.length <= bytes && /^[\x00-\x7f]*$/.test(text);
}

function shorten(text: string): string {
  return fits(text, 100)
    ? text
    : [...text]
        .map((character) => (fits(character, 1) ? character : "?"))
        .join("")
        .slice(0, 100);
}

function floorSeconds(nanos: bigint): bigint {
  const seconds = nanos / nanosPerSecond;
  return nanos < 0n && seconds * nanosPerSecond !== nanos ? seconds - 1n : seconds;
}

function formatSeconds(nanos: bigint): string {
  const size = nanos < 0n ? -nanos : nanos;
  const fraction = String(size % nanosPerSecond)
    .padStart(9, "0")
    .replace(/0+$/, "");
  return `${nanos < 0n ? "-" : ""}${size / nanosPerSecond}${fraction === "" ? "" : `.${fraction}`}`;
}
