import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { InstanceContext } from "../../../src/instance/instance-context.ts";
import { moveWalToVolume } from "../../../src/instance/reconcile/wal-volume.ts";
import type { Files } from "../../../src/ports/files.ts";
import type { Processes } from "../../../src/ports/processes.ts";
import { createFiles } from "../../../src/process/files.ts";
import { createProcesses } from "../../../src/process/processes.ts";
import { captureLogs } from "../../support/log-capture.ts";

const segment = "000000010000000000000001";
let root: string;
let pgData: string;
let walVolume: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "cnpg-ts-wal-volume-"));
  pgData = join(root, "pgdata");
  walVolume = join(root, "wal");
  mkdirSync(join(pgData, "pg_wal/archive_status"), { recursive: true });
  mkdirSync(walVolume);
  writeFileSync(join(pgData, "pg_wal", segment), "wal");
  writeFileSync(join(pgData, "pg_wal/archive_status", `${segment}.ready`), "");
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

class Killed extends Error {}

/** Runs the step with so many changes let through; the next one is where the process is killed. */
async function move(changes = Number.POSITIVE_INFINITY): Promise<string[]> {
  const done: string[] = [];
  const files = createFiles();
  const processes = createProcesses();
  const counted = <Args extends unknown[], Result>(name: string, action: (...args: Args) => Promise<Result>) => {
    return async (...args: Args): Promise<Result> => {
      if (done.length >= changes) throw new Killed(name);
      done.push(name);
      return action(...args);
    };
  };
  const watched: Files = {
    ...files,
    makeDirectory: counted("makeDirectory", files.makeDirectory),
    rename: counted("rename", files.rename),
    symlink: counted("symlink", files.symlink),
    remove: counted("remove", files.remove),
  };
  const run: Processes["run"] = (command, args, options) =>
    counted(command, () => processes.run(command, args, options))();
  const context = {
    files: watched,
    processes: { run },
    paths: { pgData, pgWal: join(pgData, "pg_wal"), walVolume },
    logger: captureLogs().logger,
  };
  await moveWalToVolume(context as unknown as InstanceContext);
  return done;
}

function expectMoved(): void {
  expect(readlinkSync(join(pgData, "pg_wal"))).toBe(join(walVolume, "pg_wal"));
  expect(readdirSync(pgData)).toEqual(["pg_wal"]);
  expect(readdirSync(join(walVolume, "pg_wal")).sort()).toEqual([segment, "archive_status"]);
  expect(readFileSync(join(pgData, "pg_wal", segment), "utf8")).toBe("wal");
  expect(readdirSync(join(pgData, "pg_wal/archive_status"))).toEqual([`${segment}.ready`]);
}

const steps = ["makeDirectory", "cp", "sync", "rename", "symlink", "sync", "remove"];

test("the copy and the link are on disk before the old folder goes", async () => {
  expect(await move()).toEqual(steps);
  expectMoved();
});

test.each(steps.map((step, at) => [at, step]))(
  "killed after %i changes, before %s: the next run completes it",
  async (at) => {
    await expect(move(Number(at))).rejects.toThrow(Killed);
    await move();
    expectMoved();
  },
);

test("a copy that was cut off is completed and nothing nests", async () => {
  mkdirSync(join(walVolume, "pg_wal/archive_status"), { recursive: true });
  writeFileSync(join(walVolume, "pg_wal", segment), "w");
  await move();
  expectMoved();
});

test("a folder that is gone while its copy is there is linked again", async () => {
  await move();
  rmSync(join(pgData, "pg_wal"));
  await move();
  expectMoved();
});

test("a link is left alone, and without a volume nothing happens", async () => {
  await move();
  expect(await move()).toEqual([]);
  rmSync(walVolume, { recursive: true });
  expect(await move()).toEqual([]);
});
