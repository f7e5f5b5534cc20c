import { spawnSync } from "node:child_process";
import { stat, writeFile } from "node:fs/promises";
import { afterEach, describe, expect, it } from "vitest";
import { Pod, type PodOptions, until } from "./pod.ts";

let pods: Pod[] = [];
async function start(options?: PodOptions): Promise<Pod> {
  const pod = await Pod.start(options);
  pods.push(pod);
  return pod;
}
afterEach(async () => {
  await Promise.all(pods.map((pod) => pod.stop()));
  pods = [];
});

describe("a command that runs once as PID 1", () => {
  it.each([["instance", "init"], ["instance", "join"], ["controller"], ["pgbouncer", "run"]])(
    "ends with the runtime's exit code and starts it one time: %s %s",
    async (...args) => {
      const pod = await start({ args: args.filter((arg) => arg !== undefined) });
      const runtime = await pod.runtime();
      expect(runtime.env["CNPG_LAUNCHER_FD"]).toBeUndefined();
      runtime.tell({ exit: 9 });
      expect(await pod.exit).toBe(9);
    },
  );

  it("has the log pipes of an instance made for a job, without a program of the image", async () => {
    const pod = await start({ args: ["instance", "join"] });
    const runtime = await pod.runtime();
    for (const name of ["postgres", "postgres.csv", "postgres.json", "postmaster.out", "postmaster.err"]) {
      expect((await stat(pod.path(`log/${name}`))).isFIFO()).toBe(true);
    }
    runtime.tell({ exit: 0 });
    expect(await pod.exit).toBe(0);
  });

  it("ends with 128 + the signal that ended the runtime", async () => {
    const pod = await start({ args: ["instance", "init"], node: "#!/bin/sh\nkill -KILL $$\n" });
    expect(await pod.exit).toBe(137);
  });

  it("relays signals from the start, reaps orphans and leaves nothing behind", async () => {
    const pod = await start({ args: ["controller", "--leader-elect"] });
    const runtime = await pod.runtime();
    await runtime.start("sh", ["-c", "(sleep 0.1 &); (setsid sleep 100 &)"]);
    await until("no zombie", async () => !/Z/.test(await runtime.shell("ps -e -o stat=")));
    await pod.signal("SIGTERM");
    expect(await runtime.signal()).toBe("SIGTERM");
    runtime.tell({ exit: 0 });
    expect(await pod.exit).toBe(0);
  });

  it("starts the operator's bundle for `controller` when it is there", async () => {
    const pod = await start({ args: ["instance", "status"] });
    const runtime = await pod.runtime();
    expect(runtime.argv[0]).toMatch(/runtime\/manager\.cjs$/);
    await writeFile(pod.path("runtime/operator.cjs"), "");
    const text = '#!/bin/sh\necho "$@"\n';
    await writeFile(pod.path("runtime/node.new"), text, { mode: 0o755 });
    spawnSync("mv", [pod.path("runtime/node.new"), pod.path("runtime/node")]);
    const run = (...args: string[]) => spawnSync(pod.path("manager"), args, { encoding: "utf8" }).stdout.trim();
    expect(run("controller")).toBe(`${pod.path("runtime/operator.cjs")} controller`);
    expect(run("--log-level=debug", "controller")).toMatch(/operator\.cjs --log-level=debug controller$/);
    expect(run("version")).toBe(`${pod.path("runtime/manager.cjs")} version`);
    expect(run("wal-archive", "--help")).toMatch(/manager\.cjs wal-archive --help$/);
    await writeFile(pod.path("runtime/node-args"), "--one\n--two=2\n");
    expect(run("version")).toBe(`--one --two=2 ${pod.path("runtime/manager.cjs")} version`);
  });
});

describe("a command that is not PID 1", () => {
  it("becomes the runtime: same process, its exit code, signals as usual", async () => {
    const pod = await start({ args: ["instance", "status"], plain: true });
    const runtime = await pod.runtime();
    expect(await runtime.shell(`ps -o args= -p ${runtime.pid}`)).toContain("instance status");
    runtime.tell({ exit: 6 });
    expect(await pod.exit).toBe(6);
  });

  it("keeps code that is meant for PostgreSQL out of node", async () => {
    const pod = await start({
      args: ["version"],
      plain: true,
      node: '#!/bin/sh\necho "$LD_PRELOAD,$NODE_OPTIONS,$MALLOC_ARENA_MAX,$MALLOC_TRIM_THRESHOLD_,$A"\n',
    });
    expect(await pod.exit).toBe(0);
    const env = { LD_PRELOAD: "/no/such.so", NODE_OPTIONS: "--x", MALLOC_ARENA_MAX: "9", A: "a" };
    expect(spawnSync(pod.path("manager"), ["version"], { encoding: "utf8", env })).toMatchObject({
      stdout: ",,1,131072,a\n",
      stderr: "",
    });
  });

  it("says so when there is no runtime", async () => {
    const pod = await start({ args: ["version"], plain: true, node: "#!/no/such/interpreter\n" });
    expect(await pod.exit).toBe(1);
    expect(pod.log).toContain("cannot start");
  });
});
