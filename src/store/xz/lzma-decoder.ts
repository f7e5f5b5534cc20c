import {
  afterLiteral,
  afterMatch,
  afterRepeat,
  afterShortRepeat,
  evenProbability,
  firstPlainSlot,
  leastLength,
  lengthPlaces,
  literalProbabilities,
  makeProbabilities,
  places,
  states,
} from "./lzma-model.ts";

const largestChunk = 1 << 21;
const firstWindow = 1 << 16;

/** Decodes the pieces of an LZMA2 stream one after another; keeps as many bytes as its dictionary has. */
export class LzmaDecoder {
  #window: Uint8Array;
  #end = 0;
  #total = 0;
  readonly #dictionary: number;
  #probabilities = makeProbabilities(0);
  #literalBits = 0;
  #literalMask = 0;
  #positionMask = 0;
  #state = 0;
  #repeats: [number, number, number, number] = [0, 0, 0, 0];
  #input: Uint8Array = new Uint8Array();
  #at = 0;
  #range = 0;
  #code = 0;

  constructor(dictionary: number) {
    this.#dictionary = dictionary;
    // Grows: most files of an archive's are small.
    this.#window = new Uint8Array(firstWindow);
  }

  /** Nothing decoded so far may be referred to any more. */
  resetDictionary(): void {
    this.#end = 0;
    this.#total = 0;
  }

  setProperties(byte: number): void {
    const position = Math.floor(byte / 45);
    const literalPosition = Math.floor(byte / 9) % 5;
    const literalContext = byte % 9;
    if (position > 4 || literalPosition + literalContext > 4) throw new Error("unknown properties");
    this.#positionMask = (1 << position) - 1;
    this.#literalMask = (1 << literalPosition) - 1;
    this.#literalBits = literalContext;
    this.#probabilities = makeProbabilities(literalContext + literalPosition);
  }

  resetState(): void {
    this.#state = 0;
    this.#repeats = [0, 0, 0, 0];
    this.#probabilities.fill(evenProbability);
  }

  /** Takes bytes that are not compressed. */
  copy(bytes: Uint8Array): void {
    this.#makeRoom(bytes.length);
    this.#window.set(bytes, this.#end);
    this.#end += bytes.length;
    this.#total += bytes.length;
  }

  /** Decodes one piece; the bytes that it stands for. */
  decode(input: Uint8Array, size: number): Uint8Array {
    if (input.length < 5 || input[0] !== 0) throw new Error("a piece without its begin");
    this.#makeRoom(size);
    this.#input = input;
    this.#code =
      (((input[1] as number) << 24) |
        ((input[2] as number) << 16) |
        ((input[3] as number) << 8) |
        (input[4] as number)) >>>
      0;
    this.#at = 5;
    this.#range = 0xffff_ffff;
    const begin = this.#end;
    const end = begin + size;
    while (this.#end < end) this.#symbol(end);
    if (this.#at !== input.length || this.#code !== 0) throw new Error("a piece that does not end where it says");
    return this.#window.slice(begin, end);
  }

  #symbol(end: number): void {
    const p = this.#probabilities;
    const state = this.#state;
    const positionState = this.#total & this.#positionMask;
    if (this.#bit(p, places.isMatch + (state << 4) + positionState) === 0) {
      this.#literal();
      this.#state = afterLiteral(state);
      return;
    }
    let length: number;
    const repeats = this.#repeats;
    if (this.#bit(p, places.isRepeat + state) === 0) {
      length = this.#length(places.matchLength, positionState);
      repeats[3] = repeats[2];
      repeats[2] = repeats[1];
      repeats[1] = repeats[0];
      repeats[0] = this.#distance(length);
      this.#state = afterMatch(state);
    } else if (this.#bit(p, places.isRepeat0 + state) === 0) {
      if (this.#bit(p, places.isRepeat0Long + (state << 4) + positionState) === 0) {
        this.#state = afterShortRepeat(state);
        this.#repeat(1, end);
        return;
      }
      length = this.#length(places.repeatLength, positionState);
      this.#state = afterRepeat(state);
    } else {
      let which = 1;
      if (this.#bit(p, places.isRepeat1 + state) !== 0) which = 2 + this.#bit(p, places.isRepeat2 + state);
      const distance = repeats[which] as number;
      for (let at = which; at > 0; at--) repeats[at] = repeats[at - 1] as number;
      repeats[0] = distance;
      length = this.#length(places.repeatLength, positionState);
      this.#state = afterRepeat(state);
    }
    this.#repeat(length, end);
  }

  #literal(): void {
    const window = this.#window;
    const before = this.#total === 0 ? 0 : (window[this.#end - 1] as number);
    const context = ((this.#total & this.#literalMask) << this.#literalBits) + (before >> (8 - this.#literalBits));
    const base = places.literals + literalProbabilities * context;
    const p = this.#probabilities;
    let symbol = 1;
    if (this.#state >= states.afterMatchFrom) {
      // Bits are told apart by those of the byte that a longer match would have given, as long as they agree.
      let expected = this.#byteAt(this.#repeats[0]);
      let agreeing = 0x100;
      while (symbol < 0x100 && agreeing !== 0) {
        expected <<= 1;
        const wanted = expected & 0x100;
        const bit = this.#bit(p, base + 0x100 + wanted + symbol);
        symbol = (symbol << 1) | bit;
        if (bit << 8 !== wanted) agreeing = 0;
      }
    }
    while (symbol < 0x100) symbol = (symbol << 1) | this.#bit(p, base + symbol);
    window[this.#end++] = symbol;
    this.#total += 1;
  }

  #length(base: number, positionState: number): number {
    const p = this.#probabilities;
    if (this.#bit(p, base + lengthPlaces.choice) === 0) {
      return leastLength + this.#tree(base + lengthPlaces.low + positionState * 8, 3);
    }
    if (this.#bit(p, base + lengthPlaces.choice2) === 0) {
      return leastLength + 8 + this.#tree(base + lengthPlaces.middle + positionState * 8, 3);
    }
    return leastLength + 16 + this.#tree(base + lengthPlaces.high, 8);
  }

  #distance(length: number): number {
    const slot = this.#tree(places.slots + (Math.min(length - leastLength, 3) << 6), 6);
    if (slot < 4) return slot;
    const bits = (slot >> 1) - 1;
    const high = ((2 | (slot & 1)) << bits) >>> 0;
    if (slot < firstPlainSlot) return high + this.#reverseTree(places.special + high - slot - 1, bits);
    return high + this.#plain(bits - 4) * 16 + this.#reverseTree(places.align, 4);
  }

  #byteAt(distance: number): number {
    if (distance >= this.#total || distance >= this.#end) throw new Error("a distance beyond the begin");
    return this.#window[this.#end - distance - 1] as number;
  }

  #repeat(length: number, end: number): void {
    const distance = this.#repeats[0];
    this.#byteAt(distance);
    if (this.#end + length > end) throw new Error("a match beyond the end of its piece");
    const window = this.#window;
    let to = this.#end;
    let from = to - distance - 1;
    for (let left = length; left > 0; left--) window[to++] = window[from++] as number;
    this.#end = to;
    this.#total += length;
  }

  #bit(p: Uint16Array, at: number): 0 | 1 {
    const probability = p[at] as number;
    const bound = Math.imul(this.#range >>> 11, probability) >>> 0;
    let bit: 0 | 1;
    if (this.#code < bound) {
      this.#range = bound;
      p[at] = probability + ((2048 - probability) >> 5);
      bit = 0;
    } else {
      this.#range -= bound;
      this.#code -= bound;
      p[at] = probability - (probability >> 5);
      bit = 1;
    }
    if (this.#range < 0x100_0000) this.#normalize();
    return bit;
  }

  #normalize(): void {
    if (this.#at >= this.#input.length) throw new Error("a piece that is cut off");
    this.#range = (this.#range << 8) >>> 0;
    this.#code = ((this.#code << 8) | (this.#input[this.#at++] as number)) >>> 0;
  }

  #plain(count: number): number {
    let value = 0;
    for (let left = count; left > 0; left--) {
      this.#range >>>= 1;
      const bit = this.#code >= this.#range ? 1 : 0;
      if (bit === 1) this.#code -= this.#range;
      value = value * 2 + bit;
      if (this.#range < 0x100_0000) this.#normalize();
    }
    return value;
  }

  #tree(base: number, bits: number): number {
    let node = 1;
    for (let left = bits; left > 0; left--) node = (node << 1) | this.#bit(this.#probabilities, base + node);
    return node - (1 << bits);
  }

  #reverseTree(base: number, bits: number): number {
    let node = 1;
    let value = 0;
    for (let at = 0; at < bits; at++) {
      const bit = this.#bit(this.#probabilities, base + node);
      node = (node << 1) | bit;
      value |= bit << at;
    }
    return value;
  }

  /** Drops what the dictionary does not reach, or grows up to what it does. */
  #makeRoom(size: number): void {
    if (this.#end + size <= this.#window.length) return;
    const most = this.#dictionary + largestChunk;
    if (this.#window.length < most) {
      const grown = new Uint8Array(Math.min(Math.max(2 * this.#window.length, this.#end + size), most));
      grown.set(this.#window.subarray(0, this.#end));
      this.#window = grown;
      if (this.#end + size <= most) return;
    }
    this.#window.copyWithin(0, this.#end - this.#dictionary, this.#end);
    this.#end = this.#dictionary;
  }
}
