import type { Cluster } from "../api/generated/cluster.ts";
import { joinShellWords, splitShellWords } from "./shell-words.ts";

/** Flags for `initdb` that the specification asks for, in the contractual order. */
export function buildInitdbFlags(cluster: Cluster): string[] {
  const initdb = cluster.spec.bootstrap?.initdb;
  if (!initdb) return [];
  // The deprecated free list replaces everything else.
  if (initdb.options && initdb.options.length > 0) return [...initdb.options];
  const flags: string[] = [];
  if (initdb.dataChecksums) flags.push("-k");
  if (cluster.spec.logLevel === "debug" || cluster.spec.logLevel === "trace") flags.push("-d");
  const valued: [string, string | undefined][] = [
    ["--encoding", initdb.encoding],
    ["--lc-collate", initdb.localeCollate],
    ["--lc-ctype", initdb.localeCType],
    ["--locale", initdb.locale],
    ["--locale-provider", initdb.localeProvider],
    ["--icu-locale", initdb.icuLocale],
    ["--icu-rules", initdb.icuRules],
    ["--builtin-locale", initdb.builtinLocale],
  ];
  for (const [flag, value] of valued) if (value) flags.push(`${flag}=${value}`);
  const size = initdb.walSegmentSize;
  if (size && isPowerOfTwo(size)) flags.push(`--wal-segsize=${size}`);
  return flags;
}

/** The flags as the one shell-quoted argument of `instance init --initdb-flags`. */
export function formatInitdbFlags(cluster: Cluster): string {
  return joinShellWords(buildInitdbFlags(cluster));
}

/** Arguments of `initdb` inside the bootstrap job. */
export function buildInitdbArguments(options: { pgData: string; walDir?: string; flags?: string }): string[] {
  return [
    "--username",
    "postgres",
    "-D",
    options.pgData,
    ...(options.walDir ? ["--waldir", options.walDir] : []),
    ...splitShellWords(options.flags ?? ""),
  ];
}

function isPowerOfTwo(value: number): boolean {
  return Number.isInteger(value) && value > 0 && (value & (value - 1)) === 0;
}
