import { createHash } from "node:crypto";
import { homedir } from "node:os";
import { join } from "node:path";
import { buildArguments, type GoTool } from "./catalogue.ts";

/** Folder that all clones of one user share for built programs. */
export function cacheRoot(env: Record<string, string | undefined> = process.env): string {
  const base = env["XDG_CACHE_HOME"];
  return join(base === undefined || base === "" ? join(env["HOME"] ?? homedir(), ".cache") : base, "cnpg-ts");
}

/** Key of a module's folder in the cache: it changes with every pinned version, line of our own Go and build flag. */
export function cacheKey(sources: readonly string[], tools: readonly GoTool[], arch: string): string {
  const hash = createHash("sha256");
  for (const part of [...sources, arch, ...tools.map((tool) => buildArguments(tool, tool.name).join("\0"))]) {
    hash.update(`${part.length}:${part}`);
  }
  return hash.digest("hex").slice(0, 16);
}
