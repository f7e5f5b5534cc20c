import { promisify } from "node:util";
import { constants, gzip as gzipCallback, zstdCompress as zstdCallback } from "node:zlib";
import { type CompressionName, compressions } from "../barman/compression.ts";
import { chooseStrategy } from "./deflate-strategy.ts";

const gzip = promisify(gzipCallback);
const zstd = promisify(zstdCallback);

const lowestGzip = 1;

/** A cheaper level may store this much more than Barman's default level does. */
const allowedGrowth = 1.03;

/** Levels below Barman's default that are worth a look, cheapest first. Those of gzip that are left out cost as much as the next. */
const cheaperLevels: Partial<Record<CompressionName, readonly number[]>> = { gzip: [2, 4, 5], zstd: [1, 2, 3] };

/**
 * Chooses the cheapest level that stores a sample in about the bytes of Barman's default level. WAL of different work differs
 * widely here: on random values the lowest levels lose nothing and take a fraction of the time, on tables they lose a tenth.
 */
export async function chooseLevel(compression: CompressionName, sample: Uint8Array): Promise<number | undefined> {
  const reference = compressions[compression].levels?.medium;
  const cheaper = cheaperLevels[compression];
  if (reference === undefined || cheaper === undefined || sample.length === 0) return reference;
  // Where nothing is searched for, every level does the same.
  const searches = compression !== "gzip" || (await chooseStrategy(sample, reference)) === constants.Z_DEFAULT_STRATEGY;
  if (!searches) return lowestGzip;
  const size = async (level: number) => (await compressSample(compression, sample, level)).length;
  const [limit = 0, ...sizes] = await Promise.all([reference, ...cheaper].map(size));
  return cheaper.find((_level, at) => (sizes[at] ?? Number.POSITIVE_INFINITY) <= limit * allowedGrowth) ?? reference;
}

function compressSample(compression: CompressionName, sample: Uint8Array, level: number): Promise<Buffer> {
  if (compression === "gzip") return gzip(sample, { level });
  return zstd(sample, { params: { [constants.ZSTD_c_compressionLevel]: level } });
}
