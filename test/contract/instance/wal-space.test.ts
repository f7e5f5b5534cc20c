import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isFull, probeWalSpace } from "../../../src/instance/wal-space.ts";

let pgWal: string;
beforeEach(() => {
  pgWal = mkdtempSync(join(tmpdir(), "cnpg-ts-wal-space-"));
});
afterEach(() => rmSync(pgWal, { recursive: true, force: true }));

test("there is room, and nothing stays of the probe", async () => {
  expect(await probeWalSpace(pgWal, 1024 * 1024)).toBe("enough");
  expect(readdirSync(pgWal)).toEqual([]);
});

test("what killed probes left is removed, and nothing else", async () => {
  for (const name of ["_cnpg_probe_1a2b", "_cnpg_probe", "000000010000000000000001"])
    writeFileSync(join(pgWal, name), "");
  expect(await probeWalSpace(pgWal, 1024 * 1024)).toBe("enough");
  expect(readdirSync(pgWal)).toEqual(["000000010000000000000001"]);
});

test("a file system without room is full", async () => {
  expect(spawnSync("mount", ["-t", "tmpfs", "-o", "size=1m", "none", pgWal]).status).toBe(0);
  try {
    expect(await probeWalSpace(pgWal, 16 * 1024 * 1024)).toBe("full");
    expect(readdirSync(pgWal)).toEqual([]);
  } finally {
    spawnSync("umount", [pgWal]);
  }
});

test("a quota that is used up is a full disk, an unreadable disk is unknown", async () => {
  expect(isFull(Object.assign(new Error("quota"), { code: "EDQUOT" }))).toBe(true);
  expect(isFull(Object.assign(new Error("disk"), { code: "EIO" }))).toBe(false);
  expect(await probeWalSpace(join(pgWal, "missing"), 1024)).toBe("unknown");
});
