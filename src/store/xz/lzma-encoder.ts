import {
  afterLiteral,
  afterMatch,
  afterRepeat,
  evenProbability,
  firstPlainSlot,
  leastLength,
  literalProbabilities,
  longestLength,
  makeProbabilities,
  places,
  states,
} from "./lzma-model.ts";
import { MatchFinder } from "./match-finder.ts";
import { RangeEncoder } from "./range-encoder.ts";

/** Three bits of the byte before choose the coder of a literal; two bits of the position that of a match. */
export const properties = { byte: 2 * 45 + 3, literalBits: 3, positionMask: 3 } as const;

const mostPieceBytes = 1 << 21;
const mostStoredBytes = 1 << 16;
/** More than the longest symbol may add. */
const storedMargin = 64;
/** Bytes behind a place that are looked at to choose its symbol. */
export const lookAhead = longestLength + 8;

export interface LzmaEffort {
  /** A power of two. */
  dictionary: number;
  /** Earlier places looked at for each byte. */
  depth: number;
  /** Length of a match that is taken without a look at others. */
  enough: number;
}

/** Turns the bytes of a window into symbols; one piece of an LZMA2 stream at a time. */
export class LzmaEncoder {
  readonly #window: Uint8Array;
  readonly #finder: MatchFinder;
  readonly #enough: number;
  readonly #probabilities = makeProbabilities(properties.literalBits);
  readonly #coder = new RangeEncoder(mostStoredBytes + 1024, this.#probabilities);
  #state = 0;
  #repeats: [number, number, number, number] = [1, 1, 1, 1];
  #known = -1;

  constructor(window: Uint8Array, effort: LzmaEffort) {
    this.#window = window;
    this.#finder = new MatchFinder(window, effort.dictionary, effort.depth, effort.enough);
    this.#enough = effort.enough;
  }

  resetState(): void {
    this.#state = 0;
    this.#repeats = [1, 1, 1, 1];
    this.#probabilities.fill(evenProbability);
  }

  resetDictionary(): void {
    this.#finder.clear();
    this.#known = -1;
  }

  /** Encodes from a place of the window on, up to `limit` at most; `end` is where its bytes end. Gives the index reached. */
  encode(from: number, limit: number, end: number, base: number): { next: number; stored: Uint8Array } {
    const coder = this.#coder;
    coder.restart();
    const last = Math.min(limit, from + mostPieceBytes - longestLength);
    let at = from;
    while (at < last && coder.pending < mostStoredBytes - storedMargin) at += this.#symbol(at, end, base);
    return { next: at, stored: coder.finish() };
  }

  /** Encodes one symbol; the number of bytes it stands for. */
  #symbol(at: number, end: number, base: number): number {
    const finder = this.#finder;
    this.#look(at, end, base);
    const { length, distance } = finder;
    const repeat = this.#bestRepeat(at, end);
    const repeatLength = repeat < 0 ? 0 : this.#common(at, this.#repeats[repeat] as number, end);
    const repeatWorth = worthOfRepeat(repeatLength);
    const worth = worthOf(length, distance);
    if (Math.max(repeatWorth, worth) <= 0) return this.#literal(at, base);
    if (repeatWorth >= worth) return this.#repeat(at, repeat, repeatLength, end, base);
    if (length < this.#enough && at + 1 < end) {
      this.#look(at + 1, end, base);
      // One literal first, when what begins behind it is worth more.
      const next = this.#bestRepeat(at + 1, end);
      const later = next < 0 ? 0 : worthOfRepeat(this.#common(at + 1, this.#repeats[next] as number, end));
      if (Math.max(later, worthOf(finder.length, finder.distance)) > worth + literalWorth)
        return this.#literal(at, base);
    }
    this.#match(at, length, distance, end, base);
    return length;
  }

  /** Asks for the match at a place, unless that is what was asked for last. */
  #look(at: number, end: number, base: number): void {
    const place = base + at;
    if (this.#known === place) return;
    if (end - at < 4) {
      this.#finder.length = 0;
      this.#finder.distance = 0;
    } else this.#finder.find(at, base, end);
    this.#known = place;
  }

  #bestRepeat(at: number, end: number): number {
    let best = -1;
    let longest = leastLength - 1;
    for (let which = 0; which < 4; which++) {
      const length = this.#common(at, this.#repeats[which] as number, end);
      if (length <= longest) continue;
      longest = length;
      best = which;
    }
    return best;
  }

  #common(at: number, distance: number, end: number): number {
    const window = this.#window;
    const limit = Math.min(longestLength, end - at);
    const from = at - distance;
    if (from < 0) return 0;
    let length = 0;
    while (length < limit && window[from + length] === window[at + length]) length += 1;
    return length;
  }

  #literal(at: number, base: number): number {
    const coder = this.#coder;
    const window = this.#window;
    const state = this.#state;
    const positionState = (base + at) & properties.positionMask;
    coder.bit(places.isMatch + (state << 4) + positionState, 0);
    const before = base + at === 0 ? 0 : (window[at - 1] as number);
    const context = places.literals + literalProbabilities * (before >> (8 - properties.literalBits));
    const byte = window[at] as number;
    let symbol = 1;
    let bits = 8;
    if (state >= states.afterMatchFrom) {
      let expected = window[at - this.#repeats[0]] as number;
      let agreeing = true;
      while (bits > 0 && agreeing) {
        expected <<= 1;
        const wanted = expected & 0x100;
        bits -= 1;
        const bit = (byte >> bits) & 1;
        coder.bit(context + 0x100 + wanted + symbol, bit);
        symbol = (symbol << 1) | bit;
        agreeing = bit << 8 === wanted;
      }
    }
    while (bits > 0) {
      bits -= 1;
      const bit = (byte >> bits) & 1;
      coder.bit(context + symbol, bit);
      symbol = (symbol << 1) | bit;
    }
    this.#state = afterLiteral(state);
    return 1;
  }

  #repeat(at: number, which: number, length: number, end: number, base: number): number {
    const coder = this.#coder;
    const state = this.#state;
    const positionState = (base + at) & properties.positionMask;
    const repeats = this.#repeats;
    coder.bit(places.isMatch + (state << 4) + positionState, 1);
    coder.bit(places.isRepeat + state, 1);
    if (which === 0) {
      coder.bit(places.isRepeat0 + state, 0);
      coder.bit(places.isRepeat0Long + (state << 4) + positionState, 1);
    } else {
      coder.bit(places.isRepeat0 + state, 1);
      coder.bit(places.isRepeat1 + state, which === 1 ? 0 : 1);
      if (which > 1) coder.bit(places.isRepeat2 + state, which - 2);
      const distance = repeats[which] as number;
      for (let place = which; place > 0; place--) repeats[place] = repeats[place - 1] as number;
      repeats[0] = distance;
    }
    coder.length(places.repeatLength, length, positionState);
    this.#state = afterRepeat(state);
    this.#skip(at, length, end, base);
    return length;
  }

  #match(at: number, length: number, distance: number, end: number, base: number): void {
    const coder = this.#coder;
    const state = this.#state;
    const positionState = (base + at) & properties.positionMask;
    coder.bit(places.isMatch + (state << 4) + positionState, 1);
    coder.bit(places.isRepeat + state, 0);
    coder.length(places.matchLength, length, positionState);
    this.#distance(distance - 1, length);
    const [first, second, third] = this.#repeats;
    this.#repeats = [distance, first, second, third];
    this.#state = afterMatch(state);
    this.#skip(at, length, end, base);
  }

  #distance(distance: number, length: number): void {
    const coder = this.#coder;
    const top = 31 - Math.clz32(distance);
    const slot = distance < 4 ? distance : 2 * top + ((distance >>> (top - 1)) & 1);
    coder.tree(places.slots + (Math.min(length - leastLength, 3) << 6), slot, 6);
    if (slot < 4) return;
    const bits = (slot >> 1) - 1;
    const high = (2 | (slot & 1)) << bits;
    const rest = distance - high;
    if (slot < firstPlainSlot) {
      coder.reverseTree(places.special + high - slot - 1, rest, bits);
      return;
    }
    coder.plain(rest >>> 4, bits - 4);
    coder.reverseTree(places.align, rest & 15, 4);
  }

  /** Notes the places that a symbol covers. */
  #skip(at: number, length: number, end: number, base: number): void {
    const last = Math.min(at + length, end - 4);
    // The one behind the first may have been looked at already.
    const first = this.#known === base + at + 1 ? at + 2 : at + 1;
    for (let place = first; place < last; place++) this.#finder.insert(place, base);
  }
}

/** About the bits that a literal costs. */
const literalWorth = 6;

/** Bits saved by a match, about. */
function worthOf(length: number, distance: number): number {
  if (length < leastLength) return 0;
  return length * literalWorth - (32 - Math.clz32(distance)) - 9;
}

function worthOfRepeat(length: number): number {
  return length < leastLength ? 0 : length * literalWorth - 7;
}
