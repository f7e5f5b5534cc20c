/** What the additional arguments of a configuration ask for, as far as our engine has a meaning for it. */
export interface ToolArguments {
  /** Options that describe the endpoint: they hold for every call to it, whichever tool they were written for. */
  addressing?: "auto" | "path" | "virtual";
  readTimeoutMs?: number;
  endpointUrl?: string;
  profile?: string;
  compressionLevel?: string;
  encryption?: string;
  kmsKeyId?: string;
  /** Azure's name for a kind of encryption. */
  encryptionScope?: string;
  /** Key of Google's key management. */
  kmsKeyName?: string;
  minChunkBytes?: number;
  maxArchiveBytes?: number;
  maxBandwidthBytes?: number;
  jobs?: number;
  noPartial?: boolean;
  /** Tokens that mean nothing here, for a warning. */
  unknown: readonly string[];
}

type Reader = (value: string, found: Writable) => boolean;
type Writable = { -readonly [K in keyof ToolArguments]: ToolArguments[K] };

const readers: Readonly<Record<string, Reader>> = {
  "--addressing-style": (value, found) => {
    if (value !== "auto" && value !== "path" && value !== "virtual") return false;
    found.addressing = value;
    return true;
  },
  "--read-timeout": (value, found) =>
    set(/^\d+$/.test(value) ? Number(value) * 1000 : undefined, (ms) => (found.readTimeoutMs = ms)),
  "--endpoint-url": (value, found) => set(value, (url) => (found.endpointUrl = url)),
  "--aws-profile": (value, found) => set(value, (name) => (found.profile = name)),
  "--compression-level": (value, found) => set(value, (level) => (found.compressionLevel = level)),
  "--encryption": (value, found) => set(value, (name) => (found.encryption = name)),
  "--sse-kms-key-id": (value, found) => set(value, (id) => (found.kmsKeyId = id)),
  "--encryption-scope": (value, found) => set(value, (scope) => (found.encryptionScope = scope)),
  "--kms-key-name": (value, found) => set(value, (name) => (found.kmsKeyName = name)),
  // How Azure's library cuts and sends what this engine cuts and sends in its own way.
  "--max-block-size": (value) => parseToolSize(value) !== undefined,
  "--max-concurrency": (value) => /^[1-9]\d*$/.test(value),
  "--max-single-put-size": (value) => parseToolSize(value) !== undefined,
  "--min-chunk-size": (value, found) => set(parseToolSize(value), (bytes) => (found.minChunkBytes = bytes)),
  "--max-archive-size": (value, found) => set(parseToolSize(value), (bytes) => (found.maxArchiveBytes = bytes)),
  "--max-bandwidth": (value, found) => set(parseToolSize(value), (bytes) => (found.maxBandwidthBytes = bytes)),
  "--jobs": (value, found) => set(/^[1-9]\d*$/.test(value) ? Number(value) : undefined, (jobs) => (found.jobs = jobs)),
};

const shortNames: Readonly<Record<string, string>> = {
  "-P": "--aws-profile",
  "--profile": "--aws-profile",
  "-e": "--encryption",
  "-S": "--max-archive-size",
  "-J": "--jobs",
};
const flags: Readonly<Record<string, (found: Writable) => void>> = {
  "--no-partial": (found) => {
    found.noPartial = true;
  },
  "-v": () => undefined,
  "-vv": () => undefined,
  "-q": () => undefined,
  "--verbose": () => undefined,
  "--quiet": () => undefined,
};

/** Reads lists of additional arguments, option by option; a later list does not overrule an earlier one. */
export function parseToolArguments(...lists: readonly (readonly string[] | undefined)[]): ToolArguments {
  const found: Writable = { unknown: [] };
  const unknown: string[] = [];
  for (const list of [...lists].reverse()) readList(list ?? [], found, unknown);
  return { ...found, unknown };
}

/** Reads a size as Barman's tools do: `kB MB GB TB` count in 1024, `KiB MiB GiB TiB` in 1000, a bare number in bytes. */
export function parseToolSize(text: string): number | undefined {
  const match = /^(\d+)\s*(?:([kmgt])(i?)b)?$/i.exec(text.trim());
  if (!match) return undefined;
  const power = match[2] === undefined ? 0 : "kmgt".indexOf(match[2].toLowerCase()) + 1;
  const bytes = Number(match[1]) * (match[3] ? 1000 : 1024) ** power;
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

function readList(list: readonly string[], found: Writable, unknown: string[]): void {
  for (let at = 0; at < list.length; at++) {
    const token = list[at] ?? "";
    const flag = flags[token];
    if (flag) {
      flag(found);
      continue;
    }
    const equals = token.startsWith("--") ? token.indexOf("=") : -1;
    const written = equals < 0 ? token : token.slice(0, equals);
    const read = readers[shortNames[written] ?? written];
    // The value is the rest of the token, or the next one.
    const value = equals < 0 ? list[at + 1] : token.slice(equals + 1);
    if (!read || value === undefined) {
      unknown.push(token);
      continue;
    }
    if (equals < 0) at += 1;
    if (!read(value, found)) unknown.push(equals < 0 ? `${token} ${value}` : token);
  }
}

function set<T>(value: T | undefined, assign: (value: T) => void): boolean {
  if (value === undefined) return false;
  assign(value);
  return true;
}
