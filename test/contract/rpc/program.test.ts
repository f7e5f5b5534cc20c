import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { name } from "../../../examples/plugin/team-label.ts";
import { runLifecycleHooks } from "../../../src/rpc/calls/lifecycle.ts";
import { createLab, type Lab } from "./lab.ts";
import { pod } from "./recording-plugin.ts";

let lab: Lab;
beforeEach(async () => {
  lab = await createLab();
});
afterEach(() => lab.end());

const cluster = {
  apiVersion: "postgresql.cnpg.io/v1",
  kind: "Cluster",
  metadata: { name: "c" },
  spec: { plugins: [{ name, parameters: { team: "payments" } }] },
};

describe("the example as a program", () => {
  it("serves until SIGTERM, then leaves no socket and exits with 0", async () => {
    const program = join(import.meta.dirname, "../../../examples/plugin/team-label.ts");
    const child = spawn(process.execPath, ["--import", "tsx", program, "--plugin-path", lab.folder], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    await once(child.stderr, "data");
    const plugin = await lab.load({ kind: "socket", name, path: join(lab.folder, name) });
    const labelled = await runLifecycleHooks([plugin], { operation: "create", cluster, object: pod });
    expect(labelled).toMatchObject({ metadata: { name: "c-1", labels: { "example.com/team": "payments" } } });
    const refused = runLifecycleHooks([plugin], {
      operation: "create",
      cluster: { ...cluster, spec: {} },
      object: pod,
    });
    await expect(refused).rejects.toMatchObject({ kind: "refused", status: "INVALID_ARGUMENT" });
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([0, null]);
    expect(existsSync(join(lab.folder, name))).toBe(false);
  });
});
