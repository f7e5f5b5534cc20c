import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { KeyPair } from "./authority.ts";

/** Writes files readable by their owner only. */
export function writePrivateFiles(folder: string, files: Record<string, string>): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text, { mode: 0o600 });
}

/** The two files of a key pair, `NAME.crt` and `NAME.key`. */
export function keyPairFiles(name: string, pair: KeyPair): Record<string, string> {
  return { [`${name}.crt`]: pair.certificate, [`${name}.key`]: pair.key };
}
