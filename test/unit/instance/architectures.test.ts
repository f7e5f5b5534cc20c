import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { listArchitectures } from "../../../src/instance/architectures.ts";

let image: string;
beforeAll(async () => {
  image = await mkdtemp(join(tmpdir(), "cnpg-ts-image-"));
  await mkdir(join(image, "runtime"));
});
afterAll(() => rm(image, { recursive: true, force: true }));

it("an image has managers for its own architecture and for those that lie beside its launcher", async () => {
  const program = join(image, "runtime", "manager.cjs");
  expect(await listArchitectures(program)).toEqual([]);
  await writeFile(join(image, "runtime", "manifest.json"), JSON.stringify({ version: "1", arch: "amd64", hash: "h" }));
  expect(await listArchitectures(program)).toEqual(["amd64"]);
  await mkdir(join(image, "operator"));
  for (const name of ["manager_arm64", "manager_amd64", "notes"]) await writeFile(join(image, "operator", name), "");
  expect(await listArchitectures(program)).toEqual(["amd64", "arm64"]);
});
