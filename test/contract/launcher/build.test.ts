import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterEach, expect, test } from "vitest";
import { buildLauncher } from "../../../launcher/build.ts";

const compiler = process.env["CC"];
const made: string[] = [];

afterEach(async () => {
  if (compiler === undefined) delete process.env["CC"];
  else process.env["CC"] = compiler;
  await Promise.all(made.splice(0).map((folder) => rm(folder, { recursive: true, force: true })));
});

test("parts of the image build may compile the launcher side by side, from nothing", async () => {
  const folder = await mkdtemp(join(tmpdir(), "cc-"));
  made.push(folder);
  // The compiler's name is part of what a binary is kept by: under a new one there is none yet.
  const { stdout } = await promisify(execFile)("sh", ["-c", `command -v "${compiler || "gcc"}"`]);
  process.env["CC"] = join(folder, "cc");
  await symlink(stdout.trim(), process.env["CC"]);

  const [one, two] = await Promise.all([buildLauncher(), buildLauncher()]);
  made.push(dirname(one));
  expect(two).toBe(one);
  expect(await readdir(dirname(one))).toEqual([basename(one)]);
});
