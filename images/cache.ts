import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";

/** Root folder of the repository. */
export const repository = dirname(dirname(fileURLToPath(import.meta.url)));

/** Folder for what several clones share and what costs minutes to make again; `XDG_CACHE_HOME` moves it. */
export function cacheFolder(...below: string[]): string {
  const cache = process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache");
  return join(cache, "cnpg-ts", ...below);
}

/** SHA-256 of a text, in hex. */
export function hashText(...parts: string[]): string {
  return createHash("sha256").update(parts.join("\0")).digest("hex");
}

/** SHA-256 of a file's content, in hex. */
export async function hashFile(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash);
  return hash.digest("hex");
}
