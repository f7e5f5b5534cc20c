/** How an object in the archive is compressed, by the names of the API and of Barman's options. */
export type CompressionName = "gzip" | "bzip2" | "xz" | "zstd" | "lz4" | "snappy";

export interface CompressionFacts {
  /** End of the object's name, with the dot. */
  suffix: string;
  /** First bytes of every such object. */
  magic: readonly number[];
  /** What `low`, `medium` and `high` stand for; absent where the format has no levels. */
  levels?: { low: number; medium: number; high: number };
  /** Whether WAL files may be stored in it. */
  wal: boolean;
  /** Whether base tars may be stored in it (zstd: readable from Barman 3.20 on). */
  base: boolean;
}

export const compressions: Readonly<Record<CompressionName, CompressionFacts>> = {
  gzip: { suffix: ".gz", magic: [0x1f, 0x8b, 0x08], levels: { low: 1, medium: 6, high: 9 }, wal: true, base: true },
  bzip2: { suffix: ".bz2", magic: [0x42, 0x5a, 0x68], levels: { low: 1, medium: 5, high: 9 }, wal: true, base: true },
  xz: {
    suffix: ".xz",
    magic: [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00],
    levels: { low: 1, medium: 3, high: 5 },
    wal: true,
    base: false,
  },
  snappy: {
    suffix: ".snappy",
    magic: [0xff, 0x06, 0x00, 0x00, 0x73, 0x4e, 0x61, 0x50, 0x70, 0x59],
    wal: true,
    base: true,
  },
  zstd: {
    suffix: ".zst",
    magic: [0x28, 0xb5, 0x2f, 0xfd],
    levels: { low: 1, medium: 4, high: 9 },
    wal: true,
    base: true,
  },
  lz4: {
    suffix: ".lz4",
    magic: [0x04, 0x22, 0x4d, 0x18],
    levels: { low: 0, medium: 6, high: 10 },
    wal: true,
    base: true,
  },
};

const byName = Object.entries(compressions) as [CompressionName, CompressionFacts][];

/** Reads the API's name; `undefined` for any other text. */
export function parseCompression(text: string): CompressionName | undefined {
  return Object.hasOwn(compressions, text) ? (text as CompressionName) : undefined;
}

/** End of an object's name; empty for plain bytes. */
export function compressionSuffix(compression: CompressionName | undefined): string {
  return compression === undefined ? "" : compressions[compression].suffix;
}

/** Takes at most one known suffix off a name. */
export function splitCompressionSuffix(name: string): { bare: string; compression: CompressionName | undefined } {
  for (const [compression, facts] of byName) {
    if (name.endsWith(facts.suffix) && name.length > facts.suffix.length) {
      return { bare: name.slice(0, -facts.suffix.length), compression };
    }
  }
  return { bare: name, compression: undefined };
}

/** Reads `--compression-level`: an integer, or low, medium, high; `undefined` for other text. */
export function parseCompressionLevel(compression: CompressionName, text: string): number | undefined {
  const { levels } = compressions[compression];
  if (levels && (text === "low" || text === "medium" || text === "high")) return levels[text];
  return /^-?\d+$/.test(text) ? Number(text) : undefined;
}

/** Whether bytes begin as an object of that compression does. */
export function hasMagic(compression: CompressionName, head: Uint8Array): boolean {
  return compressions[compression].magic.every((byte, at) => head[at] === byte);
}
