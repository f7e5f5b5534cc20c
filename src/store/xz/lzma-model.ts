// What the encoder and the decoder of LZMA share: where each adaptive probability lies, and how the state follows the symbols.

/** Symbols are literals, matches at a new distance, and repeats of one of the last four distances. */
export const states = { afterMatchFrom: 7 } as const;

const positionStates = 16;
const lengthSize = 2 + positionStates * 8 * 2 + 256;

/** Places of the probabilities in one array. */
export const places = {
  isMatch: 0,
  isRepeat: 192,
  isRepeat0: 204,
  isRepeat1: 216,
  isRepeat2: 228,
  isRepeat0Long: 240,
  slots: 432,
  special: 688,
  align: 803,
  matchLength: 819,
  repeatLength: 819 + lengthSize,
  literals: 819 + 2 * lengthSize,
} as const;

/** Places in a coder of lengths. */
export const lengthPlaces = {
  choice: 0,
  choice2: 1,
  low: 2,
  middle: 2 + positionStates * 8,
  high: 2 + positionStates * 16,
};

export const literalProbabilities = 0x300;
export const leastLength = 2;
export const longestLength = 273;
/** Probabilities are of a zero, in 1/2048. */
export const evenProbability = 1024;

/** Distances from here on have bits that are sent without a probability. */
export const firstPlainSlot = 14;

/** Array for all probabilities, given how many bits choose the coder of a literal. */
export function makeProbabilities(literalBits: number): Uint16Array {
  return new Uint16Array(places.literals + (literalProbabilities << literalBits)).fill(evenProbability);
}

export function afterLiteral(state: number): number {
  if (state < 4) return 0;
  return state < 10 ? state - 3 : state - 6;
}

export function afterMatch(state: number): number {
  return state < states.afterMatchFrom ? 7 : 10;
}

export function afterRepeat(state: number): number {
  return state < states.afterMatchFrom ? 8 : 11;
}

export function afterShortRepeat(state: number): number {
  return state < states.afterMatchFrom ? 9 : 11;
}
