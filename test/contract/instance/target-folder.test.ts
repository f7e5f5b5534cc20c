import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { clearTarget } from "../../../src/instance/bootstrap/target-folder.ts";
import { DataFolder } from "../../../src/instance/data-folder.ts";
import type { InstanceContext } from "../../../src/instance/instance-context.ts";
import { createFiles } from "../../../src/process/files.ts";
import { createProcesses } from "../../../src/process/processes.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { captureLogs } from "../../support/log-capture.ts";

let root: string;
let bin: string;
let pgData: string;
let pgWal: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "cnpg-ts-target-"));
  bin = join(root, "bin");
  pgData = join(root, "data/pgdata");
  pgWal = join(root, "wal/pg_wal");
  for (const folder of [bin, join(pgData, "global"), pgWal]) mkdirSync(folder, { recursive: true });
  writeFileSync(join(pgData, "base"), "data");
  writeFileSync(join(pgWal, "000000010000000000000001"), "wal");
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** Puts a pg_controldata in the path, runs the step and tells what stays in the volumes. */
async function clear(script: string | undefined): Promise<{ data: string[]; wal: string[] }> {
  if (script !== undefined) writeFileSync(join(bin, "pg_controldata"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const files = createFiles();
  const processes = createProcesses();
  const paths = { pgData, controlFile: join(pgData, "global/pg_control") };
  const data = new DataFolder(files, processes, paths as InstanceContext["paths"], { PATH: bin });
  const context = { files, processes, paths, data, settings: { pgWal } };
  const rest = { clock: createFakeClock(), logger: captureLogs().logger };
  await clearTarget({ ...context, ...rest } as unknown as InstanceContext);
  return { data: readdirSync(join(root, "data")), wal: readdirSync(join(root, "wal")) };
}

const renamed = expect.stringMatching(/_\d{8}t\d{6}Z$/);

test("a pg_controldata that is missing fails the job and keeps the data", async () => {
  await expect(clear(undefined)).rejects.toThrow(/cannot start pg_controldata/);
  expect(existsSync(join(pgData, "base"))).toBe(true);
});

test("one that a signal ends too", async () => {
  await expect(clear("kill -KILL $$")).rejects.toThrow(/ended by SIGKILL/);
  expect(existsSync(join(pgData, "base"))).toBe(true);
});

test("a refused folder with a control file is kept aside", async () => {
  writeFileSync(join(pgData, "global/pg_control"), "x");
  expect(await clear("exit 1")).toEqual({ data: [renamed], wal: [renamed] });
});

test("a refused folder without one is removed", async () => {
  expect(await clear("exit 1")).toEqual({ data: [], wal: [] });
});

test("WAL whose data folder is absent is kept aside", async () => {
  rmSync(pgData, { recursive: true });
  expect(await clear("exit 1")).toEqual({ data: [], wal: [renamed] });
});

test("or empty", async () => {
  rmSync(pgData, { recursive: true });
  mkdirSync(pgData);
  expect(await clear("exit 1")).toEqual({ data: ["pgdata"], wal: [renamed] });
});

test("an unfinished copy is removed with its mark, one that ran is kept", async () => {
  writeFileSync(join(root, "data/.cnpg-ts.copying"), "");
  expect(await clear("exit 0")).toEqual({ data: [], wal: [] });
  mkdirSync(pgData);
  writeFileSync(join(pgData, "postmaster.opts"), "");
  writeFileSync(join(root, "data/.cnpg-ts.copying"), "");
  expect((await clear("exit 0")).data).toEqual([renamed]);
});
