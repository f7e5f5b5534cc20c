import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { withFileLock } from "../../../images/lock.ts";

const folder = mkdtempSync(join(tmpdir(), "cnpg-ts-lock-"));
afterAll(() => rm(folder, { recursive: true }));

it("lets one in at a time, gives the result, and is free again after a failure", async () => {
  const file = join(folder, "not", "there", "yet", "lock");
  let inside = 0;
  let most = 0;
  const work = async () => {
    inside++;
    most = Math.max(most, inside);
    await new Promise((resolve) => setTimeout(resolve, 50));
    inside--;
    return most;
  };
  const failing = withFileLock(file, async () => {
    throw new Error("no luck");
  });
  await expect(failing).rejects.toThrow("no luck");
  expect(await Promise.all([1, 2, 3].map(() => withFileLock(file, work)))).toEqual([1, 1, 1]);
});

it("says so when it cannot lock", async () => {
  await expect(withFileLock(folder, async () => 1)).resolves.toBe(1); // a folder can be locked too
  await expect(withFileLock("/etc/passwd/lock", async () => 1)).rejects.toThrow("/etc/passwd");
});
