import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createFiles } from "../../../src/process/files.ts";

test("leftovers of a killed process with the same number are in nobody's way", async () => {
  const folder = mkdtempSync(join(tmpdir(), "cnpg-ts-files-"));
  try {
    const path = join(folder, "custom.conf");
    for (let count = 1; count <= 20; count += 1) {
      writeFileSync(`${path}.${process.pid}.${count}.tmp`, "a longer rest of the former life", { mode: 0o644 });
    }
    const files = createFiles();
    expect(await files.writeAtomic(path, "new", 0o600)).toBe(true);
    expect(readFileSync(path, "utf8")).toBe("new");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder).filter((name) => name.endsWith(".tmp"))).toHaveLength(19);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
