// Reads xz files: streams of blocks of LZMA2, an index, a footer. Filters other than LZMA2 alone are not known here; the archive's
// tools use none.
import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { ExactReader } from "../exact-reader.ts";
import { Crc64 } from "./crc64.ts";
import { LzmaDecoder } from "./lzma-decoder.ts";

const headMagic = Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00]);
const footMagic = Buffer.from("YZ");
const lzma2 = 0x21;
/** Bounds the memory that a file may ask for; the tools' highest level wants as much. */
const largestDictionary = 64 * 1024 * 1024;

interface Check {
  update(bytes: Uint8Array): void;
  digest(): Buffer;
}

/** Decodes one or more streams in a row. */
export async function* xzDecompress(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = new CountingReader(source);
  try {
    for (let first = true; ; first = false) {
      const magic = await reader.takeStart(first);
      if (!magic) return;
      yield* readStream(reader, magic);
    }
  } finally {
    await reader.close();
  }
}

async function* readStream(reader: CountingReader, magic: Uint8Array): AsyncGenerator<Uint8Array> {
  if (!headMagic.equals(magic)) throw new Error("no xz file");
  const flags = Buffer.from(await reader.need(6));
  if (flags.readUInt32LE(2) !== crc32(flags.subarray(0, 2))) throw new Error("a damaged header");
  const kind = flags[1] as number;
  if (flags[0] !== 0) throw new Error("unknown flags");
  const records: { stored: number; size: number }[] = [];
  for (;;) {
    const begin = reader.count;
    const [length] = await reader.need(1);
    if (length === 0) break;
    const dictionary = await readBlockHeader(reader, length as number);
    const check = makeCheck(kind);
    let size = 0;
    for await (const bytes of readPieces(reader, dictionary)) {
      check?.update(bytes);
      size += bytes.length;
      yield bytes;
    }
    const unpadded = reader.count - begin;
    const padding = await reader.need((4 - (unpadded % 4)) % 4);
    if (padding.some((byte) => byte !== 0)) throw new Error("a block with a damaged end");
    const stored = await reader.need(checkSize(kind));
    if (check && !check.digest().equals(stored)) throw new Error("the checksum of a block is another one");
    records.push({ stored: unpadded + stored.length, size });
  }
  await readEnd(reader, records, flags.subarray(0, 2));
}

/** Gives the size of the dictionary. */
async function readBlockHeader(reader: CountingReader, length: number): Promise<number> {
  const rest = Buffer.from(await reader.need((length + 1) * 4 - 1));
  const header = Buffer.concat([Buffer.of(length), rest]);
  const end = header.length - 4;
  if (header.readUInt32LE(end) !== crc32(header.subarray(0, end))) throw new Error("a damaged header of a block");
  const flags = header[1] as number;
  if ((flags & 0x3f) !== 0) throw new Error("a block with filters that are not known");
  const at = { position: 2 };
  const next = () => header[at.position++] as number;
  if (flags & 0x40) readNumber(next);
  if (flags & 0x80) readNumber(next);
  if (readNumber(next) !== lzma2 || readNumber(next) !== 1) throw new Error("a block with filters that are not known");
  const bits = next();
  if (bits > 40) throw new Error("a dictionary of unknown size");
  const dictionary = (2 | (bits & 1)) * 2 ** ((bits >> 1) + 11);
  if (dictionary > largestDictionary) throw new Error(`a dictionary of ${dictionary} bytes is larger than allowed`);
  return dictionary;
}

async function* readPieces(reader: CountingReader, dictionary: number): AsyncGenerator<Uint8Array> {
  const decoder = new LzmaDecoder(dictionary);
  let [wantsDictionary, wantsProperties, wantsState] = [true, true, true];
  for (;;) {
    const [control = 0] = await reader.need(1);
    if (control === 0) return;
    if (control >= 0xe0 || control === 1) {
      decoder.resetDictionary();
      wantsDictionary = false;
    } else if (wantsDictionary) throw new Error("a piece that refers to nothing");
    if (control < 0x80) {
      if (control > 2) throw new Error("a piece of unknown kind");
      const bytes = await reader.need(readShort(await reader.need(2)) + 1);
      decoder.copy(bytes);
      yield bytes;
      continue;
    }
    const sizes = await reader.need(4);
    const size = ((control & 0x1f) << 16) + readShort(sizes) + 1;
    const stored = readShort(sizes.subarray(2)) + 1;
    if (control >= 0xc0) {
      decoder.setProperties((await reader.need(1))[0] as number);
      wantsProperties = false;
    } else if (wantsProperties) throw new Error("a piece without properties");
    if (control >= 0xa0) {
      decoder.resetState();
      wantsState = false;
    } else if (wantsState) throw new Error("a piece without a state");
    yield decoder.decode(await reader.need(stored), size);
  }
}

async function readEnd(
  reader: CountingReader,
  records: readonly { stored: number; size: number }[],
  flags: Uint8Array,
) {
  const bytes: number[] = [0];
  const next = async () => {
    const [byte = 0] = await reader.need(1);
    bytes.push(byte);
    return byte;
  };
  const matches = async (value: number) => (await readNumberFrom(next)) === value;
  let same = await matches(records.length);
  for (const { stored, size } of records) same = same && (await matches(stored)) && (await matches(size));
  if (!same) throw new Error("the index lists other blocks than there are");
  while (bytes.length % 4 !== 0) if ((await next()) !== 0) throw new Error("a damaged index");
  const indexCrc = Buffer.from(await reader.need(4)).readUInt32LE(0);
  if (indexCrc !== crc32(Buffer.from(bytes))) throw new Error("a damaged index");
  const footer = Buffer.from(await reader.need(12));
  const sound =
    footer.readUInt32LE(0) === crc32(footer.subarray(4, 10)) &&
    (footer.readUInt32LE(4) + 1) * 4 === bytes.length + 4 &&
    footer.subarray(8, 10).equals(flags) &&
    footer.subarray(10).equals(footMagic);
  if (!sound) throw new Error("a damaged footer");
}

function makeCheck(kind: number): Check | undefined {
  if (kind === 0x01) {
    let crc = 0;
    const digest = () => {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32LE(crc);
      return bytes;
    };
    return {
      update: (bytes) => {
        crc = crc32(bytes, crc);
      },
      digest,
    };
  }
  if (kind === 0x04) return new Crc64();
  return kind === 0x0a ? createHash("sha256") : undefined;
}

function checkSize(kind: number): number {
  return kind === 0 ? 0 : 4 << Math.floor((kind - 1) / 3);
}

function readShort(bytes: Uint8Array): number {
  return ((bytes[0] as number) << 8) | (bytes[1] as number);
}

function readNumber(next: () => number): number {
  let value = 0;
  for (let factor = 1; factor < 2 ** 56; factor *= 128) {
    const byte = next();
    value += (byte & 0x7f) * factor;
    if (byte < 0x80) return value;
  }
  throw new Error("a number without an end");
}

async function readNumberFrom(next: () => Promise<number>): Promise<number> {
  const bytes: number[] = [];
  do bytes.push(await next());
  while ((bytes.at(-1) as number) >= 0x80 && bytes.length < 9);
  const all = bytes[Symbol.iterator]();
  return readNumber(() => all.next().value ?? 0x80);
}

/** Knows how far it has come; sizes in the index are those of what was read. */
class CountingReader {
  count = 0;
  readonly #reader: ExactReader;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#reader = new ExactReader(source);
  }

  async need(length: number): Promise<Uint8Array> {
    this.count += length;
    return this.#reader.need(length);
  }

  /** Begin of a stream; between two there may be zeros, four at a time. */
  async takeStart(first: boolean): Promise<Uint8Array | undefined> {
    if (first) return this.need(headMagic.length);
    for (;;) {
      const word = await this.#reader.take(4);
      if (!word) return undefined;
      if (word.every((byte) => byte === 0)) continue;
      return Buffer.concat([word, await this.need(headMagic.length - 4)]);
    }
  }

  close(): Promise<void> {
    return this.#reader.close();
  }
}
