import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import { waitFor } from "../../../local/process/wait.ts";
import { ownCluster, runScript } from "./own-cluster.ts";

const cluster = ownCluster(`/var/lib/cnpg-ts/e2e-interrupted-${process.pid}`);
const { folders, kubectl } = cluster;
const startScript = join(import.meta.dirname, "start-cluster.ts");

afterAll(async () => {
  await cluster.command("stop");
  rmSync(folders.root, { recursive: true, force: true });
});

describe("a start that is interrupted", () => {
  it("by a kill at any point can be gone on from", async () => {
    // From the first namespaces to the last program; each one goes on from where the one before was killed. A quick
    // machine may be done before the last ones are killed, never before the first.
    const codes: (number | null)[] = [];
    for (const ms of [600, 900, 1_500, 2_500, 4_000, 5_500]) codes.push((await runScript(startScript, [], ms)).code);
    expect(codes[0]).toBeNull();
    expect(codes.filter((code) => code !== null && code !== 0)).toEqual([]);
    const { code, output } = await runScript(startScript);
    expect({ code, output }).toMatchObject({ code: 0 });
    expect(await kubectl.run(["get", "nodes", "--no-headers"])).toMatch(/^node-1 +Ready /);
  }, 180_000);

  it("by npm stop ends soon and leaves nothing", async () => {
    await cluster.command("stop");
    const starting = cluster.command("start", ["--no-quickstart"]);
    await waitFor("its first processes", async () => cluster.namespaceProcesses().length > 0, { timeoutMs: 120_000 });
    await delay(1_000);
    expect((await cluster.command("stop")).code).toBe(0);
    const { code, output } = await starting;
    expect(code).not.toBe(0);
    expect(output).toContain("Interrupted");
    expect(cluster.processes()).toEqual([]);
    expect(cluster.cgroups()).toEqual([]);
  }, 180_000);
});
