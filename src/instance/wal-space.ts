import { promises as fs } from "node:fs";

export type WalSpace = "enough" | "full" | "unknown";

/** The probe's name is fixed, so that one that was killed leaves at most one file, and none beyond the next probe. */
const probeName = "_cnpg_probe";

/** A disk that is full, or the user's share of it. */
const fullCodes: readonly string[] = ["ENOSPC", "EDQUOT"];

export function isFull(error: unknown): boolean {
  return fullCodes.includes((error as NodeJS.ErrnoException).code ?? "");
}

/** Also removes what earlier versions left, whose names had a random end. */
async function removeProbes(pgWal: string): Promise<void> {
  for (const name of await fs.readdir(pgWal)) {
    if (name.startsWith(probeName)) await fs.rm(`${pgWal}/${name}`, { force: true });
  }
}

/** Tries to write as many bytes as PostgreSQL needs for its next segments, and removes them again. */
export async function probeWalSpace(pgWal: string, segmentBytes: number, segments = 2): Promise<WalSpace> {
  const path = `${pgWal}/${probeName}`;
  const block = Buffer.alloc(1024 * 1024);
  try {
    await removeProbes(pgWal);
    const file = await fs.open(path, "w", 0o600);
    try {
      for (let written = 0; written < segmentBytes * segments; written += block.length) await file.writeFile(block);
    } finally {
      await file.close();
    }
    return "enough";
  } catch (error) {
    return isFull(error) ? "full" : "unknown";
  } finally {
    await fs.rm(path, { force: true }).catch(() => undefined);
  }
}
