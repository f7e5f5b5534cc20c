// Writes xz files: one stream of one block, whose pieces come out as soon as they are encoded.
import { crc32 } from "node:zlib";
import { type LzmaEffort, LzmaEncoder, lookAhead, properties } from "./lzma-encoder.ts";

const flags = Buffer.of(0x00, 0x01);
const roomBytes = 1 << 20;
const mostPlainBytes = 1 << 16;
/** Places are counted in 32 bits; long before they run out, a new dictionary begins. */
const mostDictionaryBytes = 1 << 29;

/** By level; beyond the fifth the tools' grow further, here memory does not. */
const dictionaryBits = [18, 20, 21, 22, 22, 23];

/** What the levels of the tools spend, as far as one thread of this program can. */
function effortOf(level: number): LzmaEffort {
  const at = Math.min(9, Math.max(0, level));
  const dictionary = 1 << (dictionaryBits[at] ?? 23);
  return { dictionary, depth: 4 + 5 * at, enough: at < 3 ? 64 : 128 };
}

/** Compresses a stream. Now and then the event loop gets its turn. */
export async function* xzCompress(source: AsyncIterable<Uint8Array>, level: number): AsyncGenerator<Uint8Array> {
  const effort = effortOf(level);
  const header = blockHeader(effort.dictionary);
  yield Buffer.concat([Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00]), flags, word(crc32(flags)), header]);
  const pieces = new Pieces(effort);
  let check = 0;
  let size = 0;
  let stored = header.length;
  const out = async function* (work: Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for (const bytes of work) {
      stored += bytes.length;
      yield bytes;
      await new Promise(setImmediate);
    }
  };
  for await (const chunk of source) {
    check = crc32(chunk, check);
    size += chunk.length;
    for (let rest = chunk; rest.length > 0; ) {
      rest = rest.subarray(pieces.fill(rest));
      if (rest.length > 0) yield* out(pieces.encode(false));
    }
  }
  yield* out(pieces.encode(true));
  yield* out([Buffer.of(0)]);
  const padding = Buffer.alloc((4 - (stored % 4)) % 4);
  yield Buffer.concat([padding, word(check), end(stored + 4, size)]);
}

/** The index of the one block, and the footer. */
function end(stored: number, size: number): Buffer {
  const body = [0, 1, ...number(stored), ...number(size)];
  while (body.length % 4 !== 0) body.push(0);
  const index = Buffer.from(body);
  const tail = Buffer.concat([word(index.length / 4), flags]);
  return Buffer.concat([index, word(crc32(index)), word(crc32(tail)), tail, Buffer.from("YZ")]);
}

function blockHeader(dictionary: number): Buffer {
  const bits = 2 * (31 - Math.clz32(dictionary) - 12);
  const header = Buffer.of(2, 0, 0x21, 1, bits, 0, 0, 0);
  return Buffer.concat([header, word(crc32(header))]);
}

function word(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes;
}

function number(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...bytes, rest];
    bytes.push((rest % 128) | 0x80);
  }
}

/** The window, and the pieces of LZMA2 that its bytes become. */
class Pieces {
  readonly #window: Uint8Array;
  readonly #dictionary: number;
  readonly #encoder: LzmaEncoder;
  /** Place of the window's first byte, counted from the begin of the dictionary. */
  #base = 0;
  #at = 0;
  #end = 0;
  #wantsDictionary = true;
  #wantsProperties = true;
  #wantsState = true;

  constructor(effort: LzmaEffort) {
    this.#dictionary = effort.dictionary;
    this.#window = new Uint8Array(effort.dictionary + roomBytes);
    this.#encoder = new LzmaEncoder(this.#window, effort);
  }

  /** Takes as many bytes as there is room for. */
  fill(bytes: Uint8Array): number {
    const taken = bytes.subarray(0, this.#window.length - this.#end);
    this.#window.set(taken, this.#end);
    this.#end += taken.length;
    return taken.length;
  }

  /** Encodes what there is, all of it when it is the last. */
  *encode(last: boolean): Generator<Uint8Array> {
    const limit = last ? this.#end : this.#end - lookAhead;
    while (this.#at < limit) {
      const from = this.#at;
      if (this.#wantsState) this.#encoder.resetState();
      const { next, stored } = this.#encoder.encode(from, limit, this.#end, this.#base);
      this.#at = next;
      if (stored.length + 6 < next - from) yield this.#packed(stored, next - from);
      else yield* this.#plain(this.#window.subarray(from, next));
    }
    this.#slide();
  }

  #packed(stored: Uint8Array, size: number): Uint8Array {
    const reset = this.#wantsDictionary ? 0xe0 : this.#wantsProperties ? 0xc0 : this.#wantsState ? 0xa0 : 0x80;
    const [left, length] = [size - 1, stored.length - 1];
    const head = [reset | (left >> 16), (left >> 8) & 0xff, left & 0xff, length >> 8, length & 0xff];
    if (reset >= 0xc0) head.push(properties.byte);
    this.#wantsDictionary = false;
    this.#wantsProperties = false;
    this.#wantsState = false;
    return Buffer.concat([Buffer.from(head), stored]);
  }

  *#plain(bytes: Uint8Array): Generator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += mostPlainBytes) {
      const part = bytes.subarray(at, at + mostPlainBytes);
      const length = part.length - 1;
      yield Buffer.concat([Buffer.of(this.#wantsDictionary ? 1 : 2, length >> 8, length & 0xff), part]);
      this.#wantsDictionary = false;
    }
    this.#wantsState = true;
  }

  /** Makes room, and keeps what matches may still refer to. */
  #slide(): void {
    const kept = Math.min(this.#at, this.#dictionary - lookAhead);
    const gone = this.#at - kept;
    this.#window.copyWithin(0, gone, this.#end);
    this.#base += gone;
    this.#at -= gone;
    this.#end -= gone;
    if (this.#base < mostDictionaryBytes) return;
    this.#window.copyWithin(0, this.#at, this.#end);
    this.#end -= this.#at;
    this.#at = 0;
    this.#base = 0;
    this.#encoder.resetDictionary();
    this.#wantsDictionary = true;
    this.#wantsProperties = true;
    this.#wantsState = true;
  }
}
