import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import { until } from "./lab.ts";

const fixture = join(dirname(fileURLToPath(import.meta.url)), "fixtures", "doomed-runner.ts");
let runner: ChildProcess | undefined;
let folders: string[] = [];

afterEach(() => {
  runner?.kill("SIGKILL");
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** Commands of all processes that work in one of the folders, or were told of one. */
function workers(): string[] {
  return readdirSync("/proc").flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return [];
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
      const known = [command, readFileSync(`/proc/${pid}/environ`, "utf8"), readlinkSync(`/proc/${pid}/cwd`)];
      return known.some((text) => folders.some((folder) => text.includes(folder))) ? [command] : [];
    } catch {
      // Ended meanwhile, or a kernel thread.
      return [];
    }
  });
}

test("nothing that tests start outlives their process, though it is killed", async () => {
  runner = spawn(process.execPath, ["--import", "tsx", fixture], { stdio: ["ignore", "pipe", "inherit"] });
  const lines = createInterface({ input: runner.stdout as NodeJS.ReadableStream });
  const ended = once(runner, "exit");
  const line = await Promise.race([once(lines, "line"), ended.then(() => undefined)]);
  expect(line, "the fixture ended before everything ran").toBeDefined();
  const [lab = "", pod = "", server = ""] = JSON.parse(String(line?.[0])) as string[];
  folders = [lab, dirname(pod), dirname(server)];
  await until("the join is at work", async () => workers().some((command) => command.includes("instance join")));
  const before = workers();
  for (const part of ["manager instance run", "manager.cjs instance run", "psql", "postgres: ", server, pod]) {
    expect(before.filter((command) => command.includes(part)).length, part).toBeGreaterThan(0);
  }
  runner.kill("SIGKILL");
  await ended;
  await until("everything is gone", async () => workers().length === 0);
}, 180_000);
