import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bundleProgram, programs } from "../../../images/bundle.ts";

let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "cli-"));
  writeFileSync(join(folder, "manager.cjs"), await bundleProgram(programs["manager.cjs"]));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function manager(args: readonly string[], env: Record<string, string> = {}) {
  return new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    execFile(process.execPath, [join(folder, "manager.cjs"), ...args], { env }, (error, stdout, stderr) => {
      const code = typeof error?.code === "number" ? error.code : error ? 1 : 0;
      resolve({ code, stdout, stderr });
    });
  });
}

test("version tells the compatible version", async () => {
  expect(await manager(["version"])).toEqual({
    code: 0,
    stdout: "Build: {Version:1.30.0 Commit:none Date:unknown}\n",
    stderr: "",
  });
});

test.each([
  [["instance", "upgrade", "prepare", "/x"], "instance upgrade is not available in this version"],
  [["pgbouncer", "run"], "pgbouncer run is not available in this version"],
])("%j fails with one clear line", async (args, message) => {
  expect(await manager(args)).toEqual({ code: 1, stdout: "", stderr: `${message}\n` });
});

test.each([[["instance"]], [["instance", "run", "--no-such-flag"]], [["nonsense"]], [["wal-archive"]]])(
  "%j is refused with exit code 1",
  async (args) => {
    expect((await manager(args)).code).toBe(1);
  },
);

test.each(["run", "restore", "restoresnapshot", "pgbasebackup"])(
  "%s names a missing setting with its flag",
  async (name) => {
    const { code, stderr } = await manager(["instance", name]);
    expect(code).toBe(1);
    expect(stderr).toContain("--cluster-name is missing: give the flag or set CLUSTER_NAME");
  },
);

test("the archive commands fail while no manager answers", async () => {
  const env = { CNPG_TS_ROOT: folder };
  expect((await manager(["wal-archive", "pg_wal/000000010000000000000001"], env)).code).toBe(1);
  expect((await manager(["wal-restore", "00000002.history", "pg_wal/x"], env)).code).toBe(1);
});

test("the archive queue is listed, and an absent one is empty", async () => {
  const status = join(folder, "data", "pg_wal", "archive_status");
  mkdirSync(status, { recursive: true });
  for (const name of ["000000010000000000000002.ready", "000000010000000000000001.ready", "x.done"]) {
    writeFileSync(join(status, name), "");
  }
  const queue = await manager(["show", "wal-archive-queue"], { PGDATA: join(folder, "data") });
  expect(queue).toEqual({ code: 0, stdout: "000000010000000000000001\n000000010000000000000002\n", stderr: "" });
  expect(await manager(["show", "wal-archive-queue"], { PGDATA: "/nowhere" })).toEqual({
    code: 0,
    stdout: "",
    stderr: "",
  });
});

test("version tells the commit that the release was built from", async () => {
  const release = { version: "1", arch: "amd64", hash: "h", commit: "1234abc" };
  writeFileSync(join(folder, "manifest.json"), JSON.stringify(release));
  const { stdout } = await manager(["version"]);
  rmSync(join(folder, "manifest.json"));
  expect(stdout).toBe("Build: {Version:1.30.0 Commit:1234abc Date:unknown}\n");
});

test("architectures are those of the release that the program belongs to", async () => {
  writeFileSync(join(folder, "manifest.json"), JSON.stringify({ version: "1", arch: "amd64", hash: "h" }));
  expect((await manager(["debug", "show-architectures"])).stdout).toBe('[\n    "amd64"\n]\n');
});
