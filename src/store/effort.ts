import { promisify } from "node:util";
import { constants, gzip as gzipCallback, zstdCompress as zstdCallback } from "node:zlib";
import { type CompressionName, compressions } from "../barman/compression.ts";

const gzip = promisify(gzipCallback);
const zstd = promisify(zstdCallback);

/** A cheaper level may store this much more than Barman's default level does. */
const allowedGrowth = 1.03;

/** Levels below Barman's default that are worth a look, cheapest first. Those of gzip that are left out cost as much as the next. */
const cheaperLevels: Partial<Record<CompressionName, readonly number[]>> = { gzip: [2, 4, 5], zstd: [1, 2, 3] };

/** How a file is compressed. */
export interface Effort {
  /** @default the medium level of the format */
  level?: number | undefined;
  /** Of deflate: a search for repetitions, or for runs of one byte only. @default what each piece of the file says */
  strategy?: number | undefined;
}

/**
 * Chooses the cheapest way that stores a sample in about the bytes of Barman's default level. WAL of different work differs
 * widely here: on random values the lowest levels lose nothing and take a fraction of the time, on tables they lose a tenth.
 */
export async function chooseEffort(compression: CompressionName, sample: Uint8Array): Promise<Effort> {
  const reference = compressions[compression].levels?.medium;
  const cheaper = cheaperLevels[compression];
  if (reference === undefined || cheaper === undefined || sample.length === 0) return { level: reference };
  const size = async (effort: Effort) => (await compressSample(compression, sample, effort)).length;
  const usual = size({ level: reference });
  if (compression === "gzip") {
    const runsOnly = { level: reference, strategy: constants.Z_RLE };
    const [searched, runs] = await Promise.all([usual, size(runsOnly)]);
    if (runs <= searched) return runsOnly;
  }
  const [limit, ...sizes] = await Promise.all([usual, ...cheaper.map((level) => size({ level }))]);
  const level = cheaper.find((_level, at) => (sizes[at] ?? Number.POSITIVE_INFINITY) <= limit * allowedGrowth);
  return { level: level ?? reference };
}

function compressSample(compression: CompressionName, sample: Uint8Array, effort: Effort): Promise<Buffer> {
  const { level = constants.Z_DEFAULT_COMPRESSION, strategy = constants.Z_DEFAULT_STRATEGY } = effort;
  if (compression === "gzip") return gzip(sample, { level, strategy });
  return zstd(sample, { params: { [constants.ZSTD_c_compressionLevel]: level } });
}
