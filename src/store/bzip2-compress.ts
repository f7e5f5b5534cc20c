// One bzip2 stream out of blocks of 100 kB: small blocks keep each turn of the event loop short and cost a few per cent of size.
// Other work has its turn between two blocks: where this runs, promises about the right to write may have to be answered.
import { setImmediate as nextTurn } from "node:timers/promises";
import { blockMark, combineCrc, crcStep, endMark, groupSymbols } from "./bzip2-tables.ts";
import { sortRotations } from "./sort-rotations.ts";

const blockBytes = 100_000;
/** Bytes of a block that the last run of equal bytes may still need. */
const margin = 19;
const longestCode = 17;
const longestRun = 255;

/** Compresses a stream into one bzip2 stream. */
export async function* bzip2Compress(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const bits = new BitWriter();
  for (const byte of Buffer.from("BZh1")) bits.put(8, byte);
  const block = new Block();
  let combined = 0;
  const flush = () => {
    block.endRun();
    if (block.size === 0) return;
    combined = combineCrc(combined, block.crc);
    writeBlock(bits, block);
    block.reset();
  };
  for await (const chunk of source) {
    for (let at = 0; at < chunk.length; at++) {
      block.add(chunk[at] as number);
      if (!block.full) continue;
      flush();
      await nextTurn();
    }
    const ready = bits.drain();
    if (ready.length > 0) yield ready;
  }
  flush();
  bits.put(24, endMark[0]);
  bits.put(24, endMark[1]);
  bits.put32(combined);
  bits.pad();
  yield bits.drain();
}

/** Bytes of one block with runs cut short. */
class Block {
  readonly bytes = new Uint8Array(blockBytes);
  size = 0;
  #crc = -1;
  #last = -1;
  #run = 0;

  get full(): boolean {
    return this.size >= blockBytes - margin;
  }

  get crc(): number {
    return ~this.#crc >>> 0;
  }

  add(byte: number): void {
    if (byte !== this.#last || this.#run === longestRun) this.endRun();
    this.#crc = crcStep(this.#crc, byte);
    this.#last = byte;
    this.#run += 1;
  }

  endRun(): void {
    for (let at = 0; at < Math.min(this.#run, 4); at++) this.bytes[this.size++] = this.#last;
    if (this.#run >= 4) this.bytes[this.size++] = this.#run - 4;
    this.#run = 0;
    this.#last = -1;
  }

  reset(): void {
    this.size = 0;
    this.#crc = -1;
  }
}

function writeBlock(bits: BitWriter, block: Block): void {
  const bytes = block.bytes.subarray(0, block.size);
  const { last, origin } = sortRotations(bytes);
  const used = usedBytes(bytes);
  const symbols = moveToFront(last, used);
  bits.put(24, blockMark[0]);
  bits.put(24, blockMark[1]);
  bits.put32(block.crc);
  bits.put(1, 0);
  bits.put(24, origin);
  writeUsed(bits, used);
  writeSymbols(bits, symbols, used.length + 2);
}

function usedBytes(bytes: Uint8Array): number[] {
  const seen = new Uint8Array(256);
  for (const byte of bytes) seen[byte] = 1;
  return [...seen.keys()].filter((byte) => seen[byte] === 1);
}

function writeUsed(bits: BitWriter, used: readonly number[]): void {
  const maps = Array.from({ length: 16 }, () => 0);
  for (const byte of used) maps[byte >>> 4] = (maps[byte >>> 4] ?? 0) | (0x8000 >>> (byte & 15));
  bits.put(
    16,
    maps.reduce((all, map, at) => (map === 0 ? all : all | (0x8000 >>> at)), 0),
  );
  for (const map of maps) if (map !== 0) bits.put(16, map);
}

/** Places of the bytes in a list that moves each used one to its front; rows of zeros as two-digit numbers. */
function moveToFront(last: Uint8Array, used: readonly number[]): Uint16Array {
  const list = Uint8Array.from(used);
  const out = new Uint16Array(last.length + 1);
  let to = 0;
  let zeros = 0;
  const putZeros = () => {
    for (let rest = zeros; rest > 0; rest = (rest - 1) >>> 1) out[to++] = (rest - 1) & 1;
    zeros = 0;
  };
  for (const byte of last) {
    if (list[0] === byte) {
      zeros += 1;
      continue;
    }
    if (zeros > 0) putZeros();
    let place = 1;
    while (list[place] !== byte) place++;
    for (let at = place; at > 0; at--) list[at] = list[at - 1] as number;
    list[0] = byte;
    out[to++] = place + 1;
  }
  putZeros();
  out[to++] = used.length + 1;
  return out.subarray(0, to);
}

/** Two tables: that for the first half of the block and that for the second; the format wants two at least. */
function writeSymbols(bits: BitWriter, symbols: Uint16Array, alphabet: number): void {
  const groups = Math.ceil(symbols.length / groupSymbols);
  const firstGroups = Math.ceil(groups / 2);
  const parts = [symbols.subarray(0, firstGroups * groupSymbols), symbols.subarray(firstGroups * groupSymbols)];
  const lengths = parts.map((part) => codeLengths(part, alphabet));
  bits.put(3, 2);
  bits.put(15, groups);
  for (let group = 0; group < groups; group++) {
    // The place of the chosen table in a list that moves it to the front: only the first of the second half differs.
    if (group === firstGroups) bits.put(2, 0b10);
    else bits.put(1, 0);
  }
  for (const table of lengths) writeLengths(bits, table);
  for (const [at, part] of parts.entries()) {
    const table = lengths[at] ?? [];
    const codes = codesOf(table);
    for (const symbol of part) bits.put(table[symbol] as number, codes[symbol] as number);
  }
}

function writeLengths(bits: BitWriter, lengths: readonly number[]): void {
  let current = lengths[0] ?? 1;
  bits.put(5, current);
  for (const length of lengths) {
    for (; current < length; current++) bits.put(2, 0b10);
    for (; current > length; current--) bits.put(2, 0b11);
    bits.put(1, 0);
  }
}

/** Lengths of a prefix code for the symbols; frequencies are flattened until none is too long. */
function codeLengths(symbols: Uint16Array, alphabet: number): number[] {
  const counts = new Array<number>(alphabet).fill(1);
  for (const symbol of symbols) counts[symbol] = (counts[symbol] ?? 0) + 8;
  for (;;) {
    const lengths = huffmanLengths(counts);
    if (Math.max(...lengths) <= longestCode) return lengths;
    for (let at = 0; at < counts.length; at++) counts[at] = Math.max(1, (counts[at] ?? 0) >>> 1);
  }
}

function huffmanLengths(counts: readonly number[]): number[] {
  const parents = new Int32Array(2 * counts.length);
  const leaves = counts.map((weight, node) => ({ weight, node })).sort((a, b) => a.weight - b.weight);
  const inner: { weight: number; node: number }[] = [];
  let [leaf, joined, next] = [0, 0, counts.length];
  const smallest = () => {
    const [a, b] = [leaves[leaf], inner[joined]];
    if (a && (!b || a.weight <= b.weight)) {
      leaf++;
      return a;
    }
    joined++;
    return b ?? { weight: 0, node: 0 };
  };
  for (let rest = counts.length - 1; rest > 0; rest--) {
    const [a, b] = [smallest(), smallest()];
    parents[a.node] = next;
    parents[b.node] = next;
    inner.push({ weight: a.weight + b.weight, node: next++ });
  }
  const root = next - 1;
  return counts.map((_count, symbol) => {
    let length = 0;
    for (let node = symbol; node !== root; node = parents[node] as number) length++;
    return length;
  });
}

function codesOf(lengths: readonly number[]): number[] {
  const codes = new Array<number>(lengths.length).fill(0);
  let code = 0;
  for (let length = 1; length <= longestCode; length++) {
    for (const [symbol, each] of lengths.entries()) if (each === length) codes[symbol] = code++;
    code <<= 1;
  }
  return codes;
}

class BitWriter {
  #bytes = new Uint8Array(2 * blockBytes);
  #filled = 0;
  #held = 0;
  #heldBits = 0;

  /** At most 24 bits. */
  put(count: number, value: number): void {
    this.#held = (this.#held << count) | value;
    this.#heldBits += count;
    if (this.#filled + 4 > this.#bytes.length) this.#grow();
    while (this.#heldBits >= 8) {
      this.#heldBits -= 8;
      this.#bytes[this.#filled++] = this.#held >>> this.#heldBits;
    }
  }

  put32(value: number): void {
    this.put(16, value >>> 16);
    this.put(16, value & 0xffff);
  }

  pad(): void {
    if (this.#heldBits > 0) this.put(8 - this.#heldBits, 0);
  }

  drain(): Uint8Array {
    const ready = this.#bytes.slice(0, this.#filled);
    this.#filled = 0;
    return ready;
  }

  #grow(): void {
    const larger = new Uint8Array(2 * this.#bytes.length);
    larger.set(this.#bytes);
    this.#bytes = larger;
  }
}
