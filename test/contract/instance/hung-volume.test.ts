import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { chmodSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseVolumeFailure } from "../../../src/api/volume-failure.ts";
import { bootPrimary } from "./boot.ts";
import { Lab, type LabInstance, until } from "./lab.ts";

let lab: Lab;
let one: LabInstance;
let isMounted = false;
let thawer: ChildProcess | undefined;

/** From now on whoever writes to the volume hangs in the kernel; not for good, even if this process is killed. */
function freeze(): void {
  thawer = spawn("sh", ["-c", 'sleep 100; fsfreeze --unfreeze "$1"', "sh", one.volume], {
    detached: true,
    stdio: "ignore",
  });
  thawer.unref();
  execFileSync("fsfreeze", ["--freeze", one.volume]);
}

function thaw(): void {
  if (!thawer) return;
  execFileSync("fsfreeze", ["--unfreeze", one.volume]);
  if (thawer.pid !== undefined) process.kill(-thawer.pid);
  thawer = undefined;
}

/** Waits for a pass that looks after every file; it also shows that the next one need not write anything any more. */
async function somePass(): Promise<void> {
  const file = join(one.pgData, "postgresql.auto.conf");
  chmodSync(file, 0o600);
  await lab.patchCluster({ metadata: { annotations: { "example.org/looked-at": "before" } } });
  await until("a pass", async () => (statSync(file).mode & 0o777) === 0o400);
}

beforeAll(async () => {
  lab = await Lab.start();
  await lab.patchCluster({ metadata: { annotations: { "cnpg-ts.dev/diskProbeSeconds": "4" } } });
  one = await lab.instance("lab-1");
  const image = join(lab.root, "disk.img");
  execFileSync("truncate", ["--size=600M", image]);
  execFileSync("mkfs.ext4", ["-q", image]);
  execFileSync("mount", ["-o", "loop", image, one.volume]);
  isMounted = true;
  lab.giveAway(one.volume);
  await bootPrimary(lab, one, { start: (it) => it.run({ launcher: true }), checksums: false });
});

afterAll(async () => {
  thaw();
  await one?.remove();
  if (isMounted) execFileSync("umount", [one.volume]);
  await lab?.stop();
});

test("on a file system that hangs, the lease is given back and status calls are answered, while processes hang in the kernel", async () => {
  one.psql("CREATE TABLE kept AS SELECT 1 AS x");
  const hasPassword = "SELECT rolpassword IS NOT NULL FROM pg_authid WHERE rolname = 'app'";
  await until("roles as they should be", async () => one.psql(hasPassword) === "t");
  await somePass();
  freeze();
  const writer = one.session("INSERT INTO kept VALUES (2)");
  // A pass over files that are as they should be: one that wrote what is there already would hang, and the whole manager with it.
  await lab.patchCluster({ metadata: { annotations: { "example.org/looked-at": "frozen" } } });
  const holder = async () => (await lab.lease()).spec["holderIdentity"] ?? "";
  await until("the lease is given back", async () => (await holder()) === "", 60_000);
  expect(one.output).toContain(`no write to ${one.volume} came back for 4000 ms: killed every process of the pod`);
  const answer = await until("an answer", async () => one.get("/pg/status"));
  expect(answer.status).toBe(503);
  expect(parseVolumeFailure(answer.body)?.folders).toEqual([one.volume]);
  expect(one.postgresProcesses()).not.toEqual([]);
  thaw();
  writer.kill();
  await one.ready(60_000);
  expect(await holder()).toBe("lab-1");
  expect(Number(one.psql("SELECT count(*) FROM kept"))).toBeGreaterThan(0);
}, 180_000);
