import { expect, test } from "vitest";
import { createProcesses } from "../../../src/process/processes.ts";

test("a tool gets the environment without what the launcher set for the runtime alone", async () => {
  const own = { MALLOC_ARENA_MAX: "1", MALLOC_TRIM_THRESHOLD_: "131072", CNPG_LAUNCHER_FD: "3" };
  const { run } = createProcesses();
  const given = await run("/usr/bin/env", [], { env: { ...own, A: "1" } });
  expect(given.stdout).toBe("A=1\n");
  Object.assign(process.env, own, { B: "2" });
  try {
    const inherited = await run("/usr/bin/env", []);
    expect(inherited.stdout).toContain("B=2\n");
    expect(inherited.stdout).not.toMatch(/MALLOC_|CNPG_LAUNCHER_FD/);
  } finally {
    for (const name of [...Object.keys(own), "B"]) delete process.env[name];
  }
});
