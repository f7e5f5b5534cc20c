import { mkdtempSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { Pod, type PodOptions, sleep, until } from "./pod.ts";

const waiting = "another instance still uses the volume";
let pods: Pod[] = [];
async function start(options: PodOptions): Promise<Pod> {
  const pod = await Pod.start(options);
  pods.push(pod);
  return pod;
}
afterEach(async () => {
  await Promise.all(pods.map((pod) => pod.stop()));
  pods = [];
});

it("lets the second pod on a volume wait, telling so, until the first has ended", async () => {
  const data = mkdtempSync(join(tmpdir(), "cnpg-ts-volume-"));
  const first = await start({ data });
  const { runtime } = await first.greetedRuntime();
  const second = await start({
    data,
    args: ["instance", "join", `--pg-data=${data}/pgdata`],
    env: { PGDATA: "/else/where" },
  });
  await until("a line each five seconds", () => second.log.split(waiting).length > 2, 15_000);
  runtime.tell({ frame: ["exit", "0"], exit: 0 });
  const job = await second.runtime();
  expect(await first.exit).toBe(0);
  expect(second.log).toContain("got the volume lock");
  expect(await readdir(data)).toEqual([".cnpg-ts.lock"]); // beside PGDATA, never in it
  job.tell({ exit: 0 });
  expect(await second.exit).toBe(0);
  await rm(data, { recursive: true });
});

it("is free at once after the first pod was killed", async () => {
  const first = await start({});
  await first.greetedRuntime();
  const second = await start({ data: first.data });
  await until("waiting", () => second.log.includes(waiting));
  await first.signal("SIGKILL");
  await first.exit;
  expect((await second.greetedRuntime()).hello[2]).toBe("0");
});

it.each(["SIGTERM", "SIGINT"] as const)("ends on %s while it waits", async (name) => {
  const first = await start({});
  await first.greetedRuntime();
  const second = await start({ data: first.data });
  await until("waiting", () => second.log.includes(waiting));
  await second.signal(name);
  expect(await second.exit).toBe(name === "SIGTERM" ? 143 : 130);
});

it.each(["init", "pgbasebackup", "restore", "restoresnapshot"])("is taken by instance %s", async (command) => {
  const first = await start({});
  await first.greetedRuntime();
  const second = await start({ data: first.data, args: ["instance", command] });
  await until("waiting", () => second.log.includes(waiting));
});

it("is not taken by other commands", async () => {
  const first = await start({});
  await first.greetedRuntime();
  const second = await start({ data: first.data, args: ["instance", "status"] });
  (await second.runtime()).tell({ exit: 0 });
  expect(await second.exit).toBe(0);
  await sleep(50);
  expect(second.log).toBe("");
});

it("says what is wrong when there is no data folder to lock", async () => {
  const unset = await start({ env: { PGDATA: "" } });
  expect(await unset.exit).toBe(1);
  expect(unset.log).toContain("set PGDATA");
  const absent = await start({ env: { PGDATA: "/no/such/volume/pgdata" } });
  expect(await absent.exit).toBe(1);
  expect(absent.log).toContain("is the data volume mounted");
});
