// Bzip2 streams, one after another, into their content; other work has its turn between two blocks.
import { setImmediate as nextTurn } from "node:timers/promises";
import { blockMark, combineCrc, crcStep, endMark, groupSymbols } from "./bzip2-tables.ts";

const mostCodeBits = 20;
/** Codes of so many bits at most are found by one look into a table. */
const shortBits = 10;
const runSymbols = 2;

/** Decompresses all streams of a source. */
export async function* bzip2Decompress(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const bits = new BitReader(source);
  try {
    let streams = 0;
    while (await bits.more()) {
      yield* readStream(bits);
      bits.alignToByte();
      streams += 1;
    }
    if (streams === 0) throw new Error("the stream is empty");
  } finally {
    await bits.close();
  }
}

async function* readStream(bits: BitReader): AsyncGenerator<Uint8Array> {
  await bits.fill(4);
  const [b, z, h, level] = [bits.take(8), bits.take(8), bits.take(8), bits.take(8) - 0x30];
  if (b !== 0x42 || z !== 0x5a || h !== 0x68 || level < 1 || level > 9) throw new Error("no bzip2 stream");
  const most = level * 100_000;
  let combined = 0;
  for (;;) {
    await bits.fill(10);
    const mark = [bits.take(24), bits.take(24)];
    const crc = ((bits.take(16) << 16) | bits.take(16)) >>> 0;
    if (mark[0] === endMark[0] && mark[1] === endMark[1]) {
      if (crc !== combined) throw new Error("the bzip2 stream is damaged");
      return;
    }
    if (mark[0] !== blockMark[0] || mark[1] !== blockMark[1]) throw new Error("a bzip2 block is damaged");
    // A block is read in one go: bytes that a whole one may take at most.
    await bits.fill(most * 2 + 64 * 1024, { orLess: true });
    const content = readBlock(bits, most);
    if (crcOf(content) !== crc) throw new Error("a bzip2 block is damaged");
    combined = combineCrc(combined, crc);
    yield content;
    await nextTurn();
  }
}

function readBlock(bits: BitReader, most: number): Uint8Array {
  if (bits.take(1)) throw new Error("a randomised bzip2 block, which no program has written for decades");
  const origin = bits.take(24);
  const used = readUsedBytes(bits);
  const symbols = used.length + 2;
  const groups = bits.take(3);
  const selectorCount = bits.take(15);
  if (groups < 2 || groups > 6 || selectorCount === 0 || used.length === 0) throw new Error("a bzip2 block is damaged");
  const order = Array.from({ length: groups }, (_, at) => at);
  const selectors = Array.from({ length: selectorCount }, () => {
    let at = 0;
    while (bits.take(1)) if (++at >= groups) throw new Error("a bzip2 block is damaged");
    const [chosen = 0] = order.splice(at, 1);
    order.unshift(chosen);
    return chosen;
  });
  const codes = order.map(() => new Code(readLengths(bits, symbols)));
  const { values, counts } = readSymbols(bits, { selectors, codes, used, most, end: symbols - 1 });
  return expandRuns(invert(values, counts, origin));
}

function readUsedBytes(bits: BitReader): number[] {
  const ranges = bits.take(16);
  const used: number[] = [];
  for (let range = 0; range < 16; range++) {
    if (!(ranges & (0x8000 >>> range))) continue;
    const map = bits.take(16);
    for (let at = 0; at < 16; at++) if (map & (0x8000 >>> at)) used.push(range * 16 + at);
  }
  return used;
}

function readLengths(bits: BitReader, symbols: number): number[] {
  let length = bits.take(5);
  return Array.from({ length: symbols }, () => {
    while (bits.take(1)) length += bits.take(1) ? -1 : 1;
    if (length < 1 || length > mostCodeBits) throw new Error("a bzip2 block is damaged");
    return length;
  });
}

/** A code's symbols by the length and value of their bits. */
class Code {
  readonly limits = new Int32Array(mostCodeBits + 2);
  readonly bases = new Int32Array(mostCodeBits + 2);
  readonly permuted: number[];
  /** By the next bits: length and symbol of the short codes, 0 for the others. */
  readonly #short = new Uint16Array(1 << shortBits);

  constructor(lengths: readonly number[]) {
    this.permuted = lengths
      .map((_length, symbol) => symbol)
      .sort((a, b) => (lengths[a] ?? 0) - (lengths[b] ?? 0) || a - b);
    let code = 0;
    let index = 0;
    for (let length = 1; length <= mostCodeBits; length++) {
      const count = lengths.filter((each) => each === length).length;
      this.bases[length] = index - code;
      code += count;
      index += count;
      this.limits[length] = code;
      if (length <= shortBits) this.#noteShort(length, code - count, code);
      code <<= 1;
    }
  }

  #noteShort(length: number, first: number, end: number): void {
    const each = 1 << (shortBits - length);
    for (let value = first; value < end; value++) {
      const symbol = this.permuted[value + (this.bases[length] as number)] ?? 0;
      this.#short.fill((length << 9) | symbol, value * each, (value + 1) * each);
    }
  }

  read(bits: BitReader): number {
    const known = this.#short[bits.peek(shortBits)] as number;
    if (known !== 0) {
      bits.take(known >>> 9);
      return known & 511;
    }
    let value = 0;
    for (let length = 1; length <= mostCodeBits; length++) {
      value = (value << 1) | bits.take(1);
      if (value < (this.limits[length] as number)) {
        const symbol = this.permuted[value + (this.bases[length] as number)];
        if (symbol !== undefined) return symbol;
      }
    }
    throw new Error("a bzip2 block is damaged");
  }
}

function readSymbols(
  bits: BitReader,
  block: { selectors: readonly number[]; codes: readonly Code[]; used: number[]; most: number; end: number },
): { values: Uint32Array; counts: Uint32Array } {
  const { selectors, codes, used, most, end } = block;
  const values = new Uint32Array(most);
  const counts = new Uint32Array(256);
  let filled = 0;
  let run = 0;
  let weight = 1;
  const put = (byte: number, times: number) => {
    if (filled + times > most) throw new Error("a bzip2 block is damaged");
    if (times === 1) values[filled] = byte;
    else values.fill(byte, filled, filled + times);
    filled += times;
    counts[byte] = (counts[byte] as number) + times;
  };
  for (let index = 0; ; index++) {
    const code = codes[selectors[Math.floor(index / groupSymbols)] ?? -1];
    if (!code) throw new Error("a bzip2 block is damaged");
    const symbol = code.read(bits);
    if (symbol < runSymbols) {
      run += weight * (symbol + 1);
      weight *= 2;
      if (run > most) throw new Error("a bzip2 block is damaged");
      continue;
    }
    if (run > 0) put(used[0] ?? 0, run);
    run = 0;
    weight = 1;
    if (symbol === end) return { values: values.subarray(0, filled), counts };
    const byte = used[symbol - 1] as number;
    for (let at = symbol - 1; at > 0; at--) used[at] = used[at - 1] as number;
    used[0] = byte;
    put(byte, 1);
  }
}

/** Inverts the sorted rotations: the high bits of each value become the position of its successor. */
function invert(values: Uint32Array, counts: Uint32Array, origin: number): Uint8Array {
  const out = new Uint8Array(values.length);
  if (values.length === 0) return out;
  if (origin >= values.length) throw new Error("a bzip2 block is damaged");
  let sum = 0;
  const starts = counts.map((count) => {
    sum += count;
    return sum - count;
  });
  for (let at = 0; at < values.length; at++) {
    const byte = (values[at] as number) & 0xff;
    const to = starts[byte] as number;
    starts[byte] = to + 1;
    values[to] = ((values[to] as number) | (at << 8)) >>> 0;
  }
  let position = (values[origin] as number) >>> 8;
  for (let at = 0; at < out.length; at++) {
    const value = values[position] as number;
    out[at] = value & 0xff;
    position = value >>> 8;
  }
  return out;
}

/** Four equal bytes in a row are followed by the number of more of them. */
function expandRuns(data: Uint8Array): Uint8Array {
  const size = sizeOfRuns(data);
  const out = new Uint8Array(size);
  let to = 0;
  let equal = 0;
  for (let at = 0; at < data.length; at++) {
    const byte = data[at] as number;
    if (equal === 4) {
      out.fill(out[to - 1] as number, to, to + byte);
      to += byte;
      equal = 0;
      continue;
    }
    equal = equal > 0 && out[to - 1] === byte ? equal + 1 : 1;
    out[to++] = byte;
  }
  return out;
}

function sizeOfRuns(data: Uint8Array): number {
  let size = 0;
  let equal = 0;
  let last = -1;
  for (const byte of data) {
    if (equal === 4) {
      size += byte;
      equal = 0;
      last = -1;
      continue;
    }
    equal = byte === last ? equal + 1 : 1;
    last = byte;
    size += 1;
  }
  return size;
}

function crcOf(content: Uint8Array): number {
  let crc = -1;
  for (let at = 0; at < content.length; at++) crc = crcStep(crc, content[at] as number);
  return ~crc >>> 0;
}

/** Bits of a stream, the highest of each byte first. What is taken must have been filled before. */
class BitReader {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #data: Uint8Array = new Uint8Array();
  #at = 0;
  #held = 0;
  #heldBits = 0;

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  async more(): Promise<boolean> {
    await this.fill(1, { orLess: true });
    return this.#at < this.#data.length;
  }

  async fill(bytes: number, { orLess = false } = {}): Promise<void> {
    this.#giveBack();
    const parts = [this.#data.subarray(this.#at)];
    let size = parts[0]?.length ?? 0;
    if (size >= bytes) return;
    while (size < bytes) {
      const next = await this.#chunks.next();
      if (next.done) {
        if (orLess) break;
        throw new Error("the bzip2 stream ends early");
      }
      parts.push(next.value);
      size += next.value.length;
    }
    this.#data = Buffer.concat(parts);
    this.#at = 0;
  }

  take(count: number): number {
    while (this.#heldBits < count) {
      const byte = this.#data[this.#at++];
      if (byte === undefined) throw new Error("the bzip2 stream ends early");
      this.#held = ((this.#held & 0xff_ffff) << 8) | byte;
      this.#heldBits += 8;
    }
    this.#heldBits -= count;
    return (this.#held >>> this.#heldBits) & ((1 << count) - 1);
  }

  /** The next bits without taking them; zeros behind the end. */
  peek(count: number): number {
    while (this.#heldBits < count && this.#at < this.#data.length) {
      this.#held = ((this.#held & 0xff_ffff) << 8) | (this.#data[this.#at++] as number);
      this.#heldBits += 8;
    }
    if (this.#heldBits >= count) return (this.#held >>> (this.#heldBits - count)) & ((1 << count) - 1);
    return (this.#held << (count - this.#heldBits)) & ((1 << count) - 1);
  }

  alignToByte(): void {
    this.#giveBack();
    this.#heldBits = 0;
  }

  /** Whole bytes that were taken too early. */
  #giveBack(): void {
    const bytes = this.#heldBits >>> 3;
    this.#at -= bytes;
    this.#heldBits -= 8 * bytes;
    this.#held >>>= 8 * bytes;
  }

  async close(): Promise<void> {
    await this.#chunks.return?.(undefined);
  }
}
