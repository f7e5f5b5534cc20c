import { randomBytes } from "node:crypto";
import { promises as fs } from "node:fs";

export type WalSpace = "enough" | "full" | "unknown";

/** Tries to write as many bytes as PostgreSQL needs for its next segments, and removes them again. */
export async function probeWalSpace(pgWal: string, segmentBytes: number, segments = 2): Promise<WalSpace> {
  const path = `${pgWal}/_cnpg_probe_${randomBytes(2).toString("hex")}`;
  const block = Buffer.alloc(1024 * 1024);
  try {
    const file = await fs.open(path, "wx", 0o600);
    try {
      for (let written = 0; written < segmentBytes * segments; written += block.length) await file.write(block);
    } finally {
      await file.close();
    }
    return "enough";
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOSPC" ? "full" : "unknown";
  } finally {
    await fs.rm(path, { force: true }).catch(() => undefined);
  }
}
