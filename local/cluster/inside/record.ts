import { readFileSync, renameSync, writeFileSync } from "node:fs";
import type { ProcessIdentity } from "../../process/identity.ts";

/** The process noted in a file; undefined when there is none or the file can't be read. */
export function readRecord<T extends ProcessIdentity = ProcessIdentity>(file: string): T | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as T;
  } catch {
    return undefined;
  }
}

/** Notes a process, as a whole or not at all. */
export function writeRecord<T extends ProcessIdentity>(file: string, record: T): void {
  writeFileSync(`${file}.new`, JSON.stringify(record));
  renameSync(`${file}.new`, file);
}
