import { readFile, stat } from "node:fs/promises";
import { afterEach, describe, expect, it } from "vitest";
import { Pod, type PodOptions, sleep, until } from "./pod.ts";

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

const environment = ["PATH=/usr/bin:/bin", "A=1"];

describe("control channel", () => {
  it("greets the first runtime: no postmaster, no signal, nothing spilled, nothing dropped", async () => {
    const pod = await start({ args: ["instance", "run", "--log-level=info"] });
    const { runtime, hello } = await pod.greetedRuntime();
    expect(hello).toEqual(["hello", "1", "0", "", "", "0", "0", "", ""]);
    expect(runtime.argv).toEqual([pod.path("runtime/manager.cjs"), "instance", "run", "--log-level=info"]);
    expect(runtime.env["CNPG_LAUNCHER_FD"]).toBe("3");
  });

  it("takes frames that arrive in pieces and several at once", async () => {
    const pod = await start();
    const runtime = await pod.runtime();
    const frame = Buffer.from("\0\0\0\x07hello\x001", "latin1");
    runtime.tell({ listen: true, raw: frame.subarray(0, 6).toString("hex") });
    await sleep(100);
    expect(runtime.pending("hello")).toBe(0);
    runtime.tell({ raw: Buffer.concat([frame.subarray(6), frame, frame]).toString("hex") });
    for (let i = 0; i < 3; i++) expect(await runtime.frame("hello")).toHaveLength(9);
  });

  it("ends a channel that announces more than 1 MiB, and kills the runtime that stays without one", async () => {
    const pod = await start();
    const { runtime } = await pod.greetedRuntime();
    runtime.tell({ raw: "00100001" });
    await runtime.unplugged();
    await runtime.gone;
    const next = await pod.greetedRuntime();
    expect(next.hello[2]).toBe("0");
  });
});

describe("postmaster", () => {
  it("is started in its folder and process group, with its environment and its output in the FIFOs", async () => {
    const pod = await start({
      env: { LD_PRELOAD: "", NODE_OPTIONS: "--no-warnings", MALLOC_ARENA_MAX: "7" },
    });
    const { runtime } = await pod.greetedRuntime();
    runtime.send("drain-stop");
    await runtime.frame("drained");
    const script =
      'echo out "$A" "$NODE_OPTIONS" "$MALLOC_ARENA_MAX$MALLOC_TRIM_THRESHOLD_" $(pwd); echo err >&2; readlink /proc/self/fd/0; exec sleep 60';
    runtime.send("spawn", "7", "/tmp", "3", "sh", "-c", script, ...environment);
    const [, id, pid] = await runtime.frame("spawned");
    expect(id).toBe("7");
    expect(runtime.env["NODE_OPTIONS"]).toBeUndefined();
    expect(runtime.env["MALLOC_ARENA_MAX"]).toBe("1");
    let output = "";
    await until("output of the postmaster", async () => {
      output += await runtime.read(pod.path("log/postmaster.out"));
      return output.includes("null");
    });
    expect(output).toBe("out 1 --no-warnings 7 /tmp\n/dev/null\n");
    expect(await runtime.read(pod.path("log/postmaster.err"))).toBe("err\n");
    const [group, parent] = (await runtime.shell(`ps -o pgid=,ppid= -p ${pid}`)).trim().split(/\s+/);
    expect(group).toBe(pid);
    expect(parent).toBe("1");
    runtime.send("spawn", "8", "/tmp", "1", "true", ...environment);
    expect(await runtime.frame("error")).toEqual(["error", "8", `a postmaster runs already, process ${pid}`]);
  });

  it.each([
    ["a program that is not there", ["/tmp", "1", "/no/such/program"], /cannot start .*No such file/],
    ["a folder that is not there", ["/no/such/folder", "1", "true"], /cannot enter the folder/],
    ["an argument count beyond the fields", ["/tmp", "9", "true"], /malformed spawn request/],
  ])("answers with the reason for %s, and may be asked again", async (_name, fields, reason) => {
    const pod = await start();
    const { runtime } = await pod.greetedRuntime();
    runtime.send("spawn", "1", ...fields);
    expect((await runtime.frame("error"))[2]).toMatch(reason);
    runtime.send("spawn", "2", "/tmp", "1", "true", ...environment);
    const [, , pid] = await runtime.frame("spawned");
    expect(await runtime.frame("postmaster-exited")).toEqual(["postmaster-exited", pid, "0", "0"]);
    expect(runtime.pending("postmaster-exited")).toBe(0);
  });

  it.each([
    ["exit 3", "3", "0"],
    ["kill -9 $$", "-1", "9"],
  ])("reports how it ended: %s", async (script, code, signal) => {
    const pod = await start();
    const { runtime } = await pod.greetedRuntime();
    runtime.send("spawn", "1", "/tmp", "3", "sh", "-c", `sleep 0.2; ${script}`, ...environment);
    const [, , pid] = await runtime.frame("spawned");
    expect(await runtime.frame("postmaster-exited")).toEqual(["postmaster-exited", pid, code, signal]);
  });

  it("lives on when the runtime dies; its end is kept for the next runtime and told once", async () => {
    const pod = await start();
    const { runtime } = await pod.greetedRuntime();
    runtime.send(
      "spawn",
      "1",
      "/tmp",
      "3",
      "sh",
      "-c",
      `while [ ! -e ${pod.data}/go ]; do sleep 0.05; done; exit 5`,
      ...environment,
    );
    const [, , pid] = await runtime.frame("spawned");
    process.kill(await pod.pid(), 0);
    runtime.tell({ exit: 1 });
    const second = await pod.runtime();
    await second.shell(`touch ${pod.data}/go; while kill -0 ${pid} 2>/dev/null; do sleep 0.05; done`);
    second.tell({ listen: true, frame: ["hello", "1"] });
    expect((await second.frame("hello"))[2]).toBe("0");
    expect(await second.frame("postmaster-exited")).toEqual(["postmaster-exited", pid, "5", "0"]);
    second.tell({ exit: 1 });
    const third = await pod.greetedRuntime();
    await sleep(200);
    expect(third.runtime.pending("postmaster-exited")).toBe(0);
  });

  it("its end is told again when the runtime died without reading it", async () => {
    const pod = await start();
    const { runtime } = await pod.greetedRuntime();
    runtime.send("spawn", "1", "/tmp", "3", "sh", "-c", "sleep 0.7; exit 6", ...environment);
    await runtime.frame("spawned");
    await runtime.start("sh", ["-c", "sleep 1.5; kill -KILL $PPID"]);
    runtime.tell({ run: { command: "sh", args: ["-c", "kill -STOP $PPID"] } });
    const { runtime: next } = await pod.greetedRuntime();
    expect((await next.frame("postmaster-exited")).slice(2)).toEqual(["6", "0"]);
  });

  it("holds the volume lock itself, so that a killed pod's last process keeps the volume", async () => {
    const pod = await start();
    const { runtime } = await pod.greetedRuntime();
    runtime.send("spawn", "1", "/tmp", "2", "sleep", "60", ...environment);
    const [, , pid] = await runtime.frame("spawned");
    expect(await runtime.shell(`readlink /proc/${pid}/fd/*`)).toContain(`${pod.data}/.cnpg-ts.lock`);
  });
});

describe("children and orphans", () => {
  it("reaps every orphan and leaves the runtime's own children to the runtime", async () => {
    const pod = await start();
    const { runtime } = await pod.greetedRuntime();
    const own: number[] = [];
    for (let i = 0; i < 5; i++)
      own.push(await runtime.start("sh", ["-c", `(sleep 0.1 &) ; (setsid sleep 0.2 &); sleep 0.3; exit ${i + 10}`]));
    for (const [i, pid] of own.entries()) expect(await runtime.ended(pid)).toBe(i + 10);
    await until("no zombie", async () => !/Z/.test(await runtime.shell("ps -e -o stat=")));
  });

  it("ends the tools that a dead runtime left before it starts the next", async () => {
    const pod = await start();
    const { runtime } = await pod.greetedRuntime();
    runtime.send("spawn", "1", "/tmp", "2", "sleep", "61", ...environment);
    await runtime.frame("spawned");
    await runtime.start("sh", ["-c", "trap '' TERM; sleep 62 & sleep 63"]);
    await runtime.start("sleep", ["64"]);
    const died = Date.now();
    runtime.tell({ exit: 1 });
    const next = await pod.runtime();
    expect(Date.now() - died).toBeGreaterThan(4500); // one of them ignores SIGTERM for five seconds
    const rest = await next.shell("ps -e -o args=");
    expect(rest).toContain("sleep 61");
    expect(rest).not.toMatch(/sleep 6[234]/);
  });
});

describe("signals", () => {
  it.each(["SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP", "SIGUSR1"] as const)("relays %s", async (name) => {
    const pod = await start();
    const { runtime } = await pod.greetedRuntime();
    await pod.signal(name);
    expect(await runtime.signal()).toBe(name);
  });

  it("keeps a SIGTERM that comes before hello, and tells every runtime after", async () => {
    const pod = await start();
    const runtime = await pod.runtime();
    await pod.signal("SIGTERM");
    await sleep(200);
    runtime.tell({ listen: true, frame: ["hello", "1"] });
    expect((await runtime.frame("hello"))[3]).toBe("TERM");
    runtime.tell({ exit: 1 });
    expect((await pod.greetedRuntime()).hello[3]).toBe("TERM");
  });

  it("stops PostgreSQL itself, fast, when no runtime can be kept up", async () => {
    const pod = await start();
    const { runtime } = await pod.greetedRuntime();
    const script = `trap 'echo fast > ${pod.data}/how; exit 0' INT; while :; do sleep 0.1; done`;
    runtime.send("spawn", "1", "/tmp", "3", "bash", "-c", script, ...environment);
    await runtime.frame("spawned");
    await runtime.shell(
      `printf '#!/bin/sh\\nexit 1\\n' > ${pod.path("runtime/node.new")}; chmod 755 ${pod.path("runtime/node.new")}; mv ${pod.path("runtime/node.new")} ${pod.path("runtime/node")}`,
    );
    runtime.tell({ exit: 1 });
    await sleep(300);
    const asked = Date.now();
    await pod.signal("SIGTERM");
    expect(await pod.exit).toBe(0);
    expect(Date.now() - asked).toBeGreaterThan(9500);
    expect(await readFile(`${pod.data}/how`, "utf8")).toBe("fast\n");
  });

  it("stops PostgreSQL itself when runtimes come up, greet and die one after the other", async () => {
    const pod = await start();
    const { runtime } = await pod.greetedRuntime();
    const script = `trap 'echo fast > ${pod.data}/how; exit 0' INT; while :; do sleep 0.1; done`;
    runtime.send("spawn", "1", "/tmp", "3", "bash", "-c", script, ...environment);
    await runtime.frame("spawned");
    await pod.signal("SIGTERM");
    await runtime.signal();
    runtime.tell({ exit: 1 });
    (await pod.greetedRuntime()).runtime.tell({ exit: 1 });
    const second = Date.now();
    const last = await pod.greetedRuntime();
    expect(last.hello[3]).toBe("TERM");
    expect(await pod.exit).toBe(0);
    expect(Date.now() - second).toBeGreaterThan(9_000);
    expect(await readFile(`${pod.data}/how`, "utf8")).toBe("fast\n");
  });
});

describe("end", () => {
  it.each([0, 4, 137])("leaves with the code that was asked for: %i", async (code) => {
    const pod = await start();
    const { runtime } = await pod.greetedRuntime();
    runtime.tell({ frame: ["exit", String(code)], exit: 0 });
    expect(await pod.exit).toBe(code);
  });

  it("asks what is left politely and kills it after five seconds", async () => {
    const pod = await start();
    const { runtime } = await pod.greetedRuntime();
    const trap = `trap 'echo asked > ${pod.data}/asked; sleep 100' TERM`;
    const polite = `${trap}; touch ${pod.data}/listens; while :; do sleep 0.1; done`;
    await runtime.start("bash", ["-c", polite], true);
    await expect.poll(() => stat(`${pod.data}/listens`).catch(() => null)).not.toBeNull();
    const asked = Date.now();
    runtime.tell({ frame: ["exit", "3"], exit: 0 });
    expect(await pod.exit).toBe(3);
    expect(Date.now() - asked).toBeGreaterThan(4800);
    expect(await readFile(`${pod.data}/asked`, "utf8")).toBe("asked\n");
  });

  it("gives up with 1 after five short lives when there never was a PostgreSQL", async () => {
    const pod = await start({ node: "#!/bin/sh\nexit 0\n" });
    expect(await pod.exit).toBe(1);
    expect(pod.logLines().filter((line) => line["msg"]?.startsWith("the runtime ended")).length).toBe(5);
    expect(pod.logLines()[0]).toMatchObject({ level: "error", logger: "launcher", logging_pod: "pod-1" });
  });

  it("never gives up while there is one", async () => {
    const pod = await start();
    const { runtime } = await pod.greetedRuntime();
    runtime.send("spawn", "1", "/tmp", "2", "sleep", "60", ...environment);
    const [, , pid] = await runtime.frame("spawned");
    runtime.tell({ exit: 1 });
    for (let i = 0; i < 5; i++) (await pod.runtime()).tell({ exit: 1 });
    const { hello } = await pod.greetedRuntime();
    expect(hello[2]).toBe(pid);
    const waits = pod.logLines().flatMap((line) => /again in (\d+) ms/.exec(line["msg"] ?? "")?.[1] ?? []);
    expect(waits).toEqual(["100", "200", "400", "800", "1600", "3200"]);
  });
});

describe("files", () => {
  it("makes the FIFOs 0600 in a folder 0700", async () => {
    const pod = await start();
    await pod.greetedRuntime();
    expect((await stat(pod.path("log"))).mode & 0o777).toBe(0o700);
    for (const name of ["postgres", "postgres.csv", "postgres.json", "postmaster.out", "postmaster.err"]) {
      const file = await stat(pod.path(`log/${name}`));
      expect(file.isFIFO()).toBe(true);
      expect(file.mode & 0o777).toBe(0o600);
    }
  });
});
