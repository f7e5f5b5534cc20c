import { promisify } from "node:util";
import { constants, deflateRaw as deflateRawCallback } from "node:zlib";

const deflateRaw = promisify(deflateRawCallback);

/** As far as deflate looks back. A search in it takes a quarter of the time that a piece of random digits takes without one. */
const sampleBytes = 32 * 1024;
/** Bytes that shrink below this part of themselves without a search are no random values: the search is then worth its time. */
const randomRatio = 0.4;

/**
 * Chooses how deflate looks for repetitions in a piece. In random digits (keys, hashes, tokens as text) it finds short ones that
 * take more room than the digits, at a quarter of the speed: there only runs of one byte are looked for. A sample from the
 * middle decides, and never for what would be larger.
 */
export async function chooseStrategy(piece: Uint8Array, level: number): Promise<number> {
  const from = Math.max(0, Math.floor((piece.length - sampleBytes) / 2));
  const sample = piece.subarray(from, from + sampleBytes);
  const runs = await deflateRaw(sample, { level, strategy: constants.Z_RLE });
  if (runs.length < sample.length * randomRatio) return constants.Z_DEFAULT_STRATEGY;
  const searched = await deflateRaw(sample, { level });
  return runs.length <= searched.length ? constants.Z_RLE : constants.Z_DEFAULT_STRATEGY;
}
