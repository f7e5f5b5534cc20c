import { readFileSync, writeFileSync } from "node:fs";

/** Writes a file unless it holds that text: kube-proxy ends whenever its configuration is written to. */
export function writeIfChanged(file: string, text: string): void {
  if (read(file) !== text) writeFileSync(file, text);
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
