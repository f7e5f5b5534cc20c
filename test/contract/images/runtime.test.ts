import { spawnSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { copyFile, cp, mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { buildRuntime, readManifest } from "../../../images/runtime.ts";
import { buildLauncher } from "../../../launcher/build.ts";

const entry = join(dirname(fileURLToPath(import.meta.url)), "fixtures", "placeholder.ts");
const programs = { "manager.cjs": entry };
const work = mkdtempSync(join(tmpdir(), "cnpg-ts-runtime-"));
const root = join(work, "root");
let runtime: string;

beforeAll(async () => {
  runtime = await buildRuntime({ programs, output: join(work, "runtime") });
  await mkdir(join(root, "controller"), { recursive: true });
  await mkdir(join(root, "image"));
  await copyFile(await buildLauncher(), join(root, "image", "manager"));
  await cp(runtime, join(root, "image", "runtime"), { recursive: true });
});
afterEach(() => {
  vi.unstubAllEnvs();
});
afterAll(() => rm(work, { recursive: true, force: true }));

describe("an empty root file system", () => {
  it("is enough for bootstrap and for the runtime", async () => {
    expect(spawnSync("chroot", [root, "/image/manager", "bootstrap", "/controller/manager"]).status).toBe(0);
    await rm(join(root, "image"), { recursive: true });
    expect(await readdir(root)).toEqual(["controller"]);
    const result = spawnSync("chroot", [root, "/controller/manager", "version", "--flag"], {
      encoding: "utf8",
      env: { PATH: process.env["PATH"], NODE_OPTIONS: "--no-such-option" },
    });
    expect(result.stderr).toBe("");
    const report = JSON.parse(result.stdout);
    expect(report).toMatchObject({
      version: expect.stringMatching(/^v24\./),
      execArgv: ["--max-semi-space-size=1", "--no-maglev"],
      argv: [expect.anything(), "/controller/runtime/manager.cjs", "version", "--flag"],
      refused: expect.stringContaining("ECONNREFUSED"),
      absent: expect.stringContaining("ENOENT"),
      unknown: expect.stringMatching(/ENOTFOUND|EAI_AGAIN/),
      root: ["controller"],
    });
  });

  it("runs it read-only and as a user without a name", () => {
    const command = `mount --bind ${root} ${root} && mount -o remount,ro,bind ${root} && exec chroot --userspec=10001:10001 ${root} /controller/manager version`;
    spawnSync("chmod", ["-R", "a+rX", join(root, "controller")]);
    const result = spawnSync("unshare", ["--mount", "sh", "-c", command], {
      encoding: "utf8",
      env: { PATH: process.env["PATH"] },
    });
    expect(result.stderr).toBe("");
    expect(JSON.parse(result.stdout).version).toMatch(/^v24/);
  });
});

describe("the assembled folder", () => {
  it("is the same for the same inputs, and says what it is", async () => {
    const again = await buildRuntime({ programs, output: join(work, "again") });
    expect((await readManifest(again)).hash).toBe((await readManifest(runtime)).hash);
    expect(await readManifest(runtime)).toEqual({
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      arch: process.arch === "x64" ? "amd64" : process.arch,
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      commit: expect.stringMatching(/^([0-9a-f]{7,40}|none)$/),
    });
  });

  it("is the same program whichever commit it is built from, and says the one that a release names", async () => {
    const output = join(work, "released");
    vi.stubEnv("CNPG_TS_COMMIT", "1234abc");
    await buildRuntime({ programs, output });
    expect(await readManifest(output)).toEqual({ ...(await readManifest(runtime)), commit: "1234abc" });
    vi.stubEnv("CNPG_TS_COMMIT", "5678def");
    await buildRuntime({ programs, output });
    expect((await readManifest(output)).commit).toBe("5678def");
    vi.unstubAllEnvs();
    await buildRuntime({ programs, output });
    expect((await readManifest(output)).commit).toBe("5678def");
  });

  it("gets another hash when a program changes", async () => {
    const other = await buildRuntime({ programs: { ...programs, "operator.cjs": entry }, output: join(work, "other") });
    expect((await readManifest(other)).hash).not.toBe((await readManifest(runtime)).hash);
  });

  it("is left alone when nothing changed", async () => {
    const before = await stat(join(runtime, "node"));
    await buildRuntime({ programs, output: runtime });
    expect((await stat(join(runtime, "node"))).ino).toBe(before.ino);
  });

  it("fits the scratch volume and names no folder of this machine", async () => {
    const { size } = await stat(join(runtime, "node"));
    expect(size).toBeLessThan(115e6);
    expect(await readFile(join(runtime, "manager.cjs"), "utf8")).not.toContain(work);
    expect(await readFile(join(runtime, "manager.cjs"), "utf8")).not.toContain(process.cwd());
  });

  it("is not made from a program that does not exist", async () => {
    const missing = buildRuntime({ programs: { "manager.cjs": "/no/such.ts" }, output: join(work, "none") });
    await expect(missing).rejects.toThrow("/no/such.ts");
    expect((await readdir(work)).filter((name) => name.startsWith("none"))).toEqual([]);
  });
});
