import { spawnSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { chmod, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { installPod } from "./pod.ts";

let root: string;
beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "cnpg-ts-bootstrap-"));
  await installPod(join(root, "image"), { node: "#!/bin/sh\necho started >> $0.started\n" });
  await mkdir(join(root, "image", "runtime", "lib"));
  await writeFile(join(root, "image", "runtime", "lib", "libc.so.6"), "x".repeat(300_000));
  await writeFile(join(root, "image", "runtime", "manager.cjs"), "");
});
afterEach(() => rm(root, { recursive: true, force: true }));

const bootstrap = (target: string) =>
  spawnSync(join(root, "image", "manager"), ["bootstrap", target], { encoding: "utf8" });

it("copies launcher and runtime, leaves nothing else, and starts no node", async () => {
  await mkdir(join(root, "controller"));
  const result = bootstrap(join(root, "controller", "manager"));
  expect(result.status).toBe(0);
  expect((await readdir(join(root, "controller"), { recursive: true })).sort()).toEqual(
    ["manager", "runtime", "runtime/lib", "runtime/lib/libc.so.6", "runtime/manager.cjs", "runtime/node"].sort(),
  );
  expect((await stat(join(root, "controller", "manager"))).mode & 0o777).toBe(0o750);
  expect((await stat(join(root, "controller", "runtime", "node"))).mode & 0o777).toBe(0o755);
  for (const name of ["manager", "runtime/lib/libc.so.6", "runtime/manager.cjs"])
    expect(await readFile(join(root, "controller", name))).toEqual(await readFile(join(root, "image", name)));
});

it("replaces what an earlier run left, whole or half", async () => {
  const folder = join(root, "controller");
  await mkdir(join(folder, "runtime"), { recursive: true });
  await mkdir(join(folder, "runtime.new", "lib"), { recursive: true });
  await writeFile(join(folder, "runtime", "gone.cjs"), "");
  await writeFile(join(folder, "manager.new"), "half");
  await writeFile(join(folder, "manager"), "old");
  expect(bootstrap(join(folder, "manager")).status).toBe(0);
  expect((await readdir(folder)).sort()).toEqual(["manager", "runtime"]);
  expect((await readdir(join(folder, "runtime"))).sort()).toEqual(["lib", "manager.cjs", "node"]);
});

it("ends with 2 and a reason when it cannot", async () => {
  const nowhere = bootstrap(join(root, "no", "such", "folder", "manager"));
  expect(nowhere.status).toBe(2);
  expect(nowhere.stderr).toContain("cannot copy the runtime to");
  expect(nowhere.stderr).toContain("No such file or directory");
  await rm(join(root, "image", "runtime"), { recursive: true });
  expect(bootstrap(join(root, "manager")).status).toBe(2);
});

it("ends with 2 on a full disk and does not touch what was there", async () => {
  const small = join(root, "small");
  await mkdir(small);
  expect(spawnSync("mount", ["-t", "tmpfs", "-o", "size=1100k", "tmpfs", small]).status).toBe(0);
  try {
    await writeFile(join(small, "manager"), "old");
    await chmod(join(small, "manager"), 0o750);
    const result = bootstrap(join(small, "manager"));
    expect(result.status).toBe(2);
    expect(result.stderr).toContain("No space left");
    expect(await readFile(join(small, "manager"), "utf8")).toBe("old");
  } finally {
    spawnSync("umount", [small]);
  }
});
