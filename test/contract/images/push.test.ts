import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { operatorImage } from "../../../images/archives.ts";
import { repository } from "../../../images/cache.ts";
import { type Registry, startRegistry } from "../../support/registry.ts";

let registry: Registry;

beforeAll(async () => {
  registry = await startRegistry();
});
afterAll(() => registry?.stop());

it("pushes an image with all its layers to a registry instead of loading it", async () => {
  const args = ["--import", "tsx", join(repository, "images", "build.ts"), "images"];
  const { host } = registry;
  const options = ["--only", operatorImage, "--registry", `${host}/team`];
  const { stdout } = await promisify(execFile)(process.execPath, [...args, ...options], { cwd: repository });
  expect(stdout).toContain(`pushing ${host}/team/cnpg-ts:dev`);
  expect(stdout).not.toContain("loaded");
  const manifest = JSON.parse(registry.manifest("team/cnpg-ts:dev") ?? "{}");
  const config = JSON.parse(registry.blob(manifest.config.digest) ?? "{}");
  expect(config.config.Entrypoint).toEqual(["/manager"]);
  expect(manifest.layers.length).toBeGreaterThan(0);
  for (const layer of manifest.layers) expect(registry.has(layer.digest)).toBe(true);
}, 300_000);

it.each([
  [["nonsense"], "nothing to build by the name nonsense"],
  [["images", "--only", "localhost/none:1"], "No such image: localhost/none:1"],
  [["--no-such-option"], "no-such-option"],
])("the command refuses %j with a reason", async (args, reason) => {
  const run = promisify(execFile)(
    process.execPath,
    ["--import", "tsx", join(repository, "images", "build.ts"), ...args],
    {
      cwd: repository,
    },
  );
  await expect(run).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining(reason) });
});
