/** One release of the operand image's base system. */
export interface OsRelease {
  /** `VERSION` of its os-release file. */
  version: string;
  /** From this day on a newer release should be used, as `yyyy-mm-dd`. */
  deprecatedFrom: string;
  /** Last day with updates of its security, as `yyyy-mm-dd`. */
  supportedUntil: string;
}

/** The releases that operand images are built on (reference: instance manager §3.1). */
const releases: readonly OsRelease[] = [
  { version: "10 (buster)", deprecatedFrom: "2022-09-10", supportedUntil: "2024-06-30" },
  { version: "11 (bullseye)", deprecatedFrom: "2024-08-14", supportedUntil: "2026-08-31" },
  { version: "12 (bookworm)", deprecatedFrom: "2026-06-10", supportedUntil: "2028-06-30" },
  { version: "13 (trixie)", deprecatedFrom: "2028-08-09", supportedUntil: "2030-06-30" },
];

export type OsVerdict =
  | { kind: "supported" | "deprecated" | "unsupported"; release: OsRelease }
  /** A system that the table does not know; `version` is empty when its file names none. */
  | { kind: "unknown"; version: string };

/** Judges the system of the image by the text of its os-release file; `now` in milliseconds since 1970. */
export function judgeOperatingSystem(osRelease: string, now: number): OsVerdict {
  const version = parseOsRelease(osRelease).get("VERSION") ?? "";
  const release = releases.find((known) => known.version === version);
  if (!release) return { kind: "unknown", version };
  const today = new Date(now).toISOString().slice(0, 10);
  if (today > release.supportedUntil) return { kind: "unsupported", release };
  return { kind: today >= release.deprecatedFrom ? "deprecated" : "supported", release };
}

/** Values of an os-release file, which is a list of assignments that a shell could read. */
export function parseOsRelease(text: string): Map<string, string> {
  const values = new Map<string, string>();
  for (const line of text.split("\n")) {
    const match = /^\s*([A-Za-z_][A-Za-z0-9_]*)=(.*?)\s*$/.exec(line);
    if (match) values.set(match[1] ?? "", unquote(match[2] ?? ""));
  }
  return values;
}

function unquote(value: string): string {
  const quote = value[0];
  if (quote !== '"' && quote !== "'") return value;
  const inner = value.endsWith(quote) && value.length > 1 ? value.slice(1, -1) : value.slice(1);
  return quote === '"' ? inner.replace(/\\(["$`\\])/g, "$1") : inner;
}
