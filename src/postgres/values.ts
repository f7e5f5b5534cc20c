const words = {
  true: ["true", "on", "yes", "1"],
  false: ["false", "off", "no", "0"],
} as const;

/** Reads a boolean setting as PostgreSQL does: unambiguous prefixes, any case; `undefined` for anything else. */
export function parsePostgresBoolean(text: string): boolean | undefined {
  const value = text.trim().toLowerCase();
  // "o" alone could be on or off, so PostgreSQL refuses it.
  if (value === "" || value === "o") return undefined;
  if (words.true.some((word) => word.startsWith(value))) return true;
  if (words.false.some((word) => word.startsWith(value))) return false;
  return undefined;
}

const memoryUnits: Record<string, bigint> = { B: 1n, kB: 1024n, MB: 1024n ** 2n, GB: 1024n ** 3n, TB: 1024n ** 4n };

/**
 * Reads a size such as `128MB` in bytes; a bare number counts `defaultUnit` (default MB). `undefined` when it is neither.
 * Fractions are allowed with a unit, as PostgreSQL allows them.
 */
export function parseMemory(text: string, defaultUnit: "B" | "kB" | "MB" | "GB" | "TB" = "MB"): bigint | undefined {
  const match = /^\s*(\d+)(\.\d+)?\s*(B|kB|MB|GB|TB)?\s*$/.exec(text);
  if (!match?.[1]) return undefined;
  const unit = memoryUnits[match[3] ?? defaultUnit];
  if (unit === undefined) return undefined;
  const whole = BigInt(match[1]) * unit;
  if (match[2] === undefined) return whole;
  return whole + BigInt(Math.round(Number(match[2]) * Number(unit)));
}
