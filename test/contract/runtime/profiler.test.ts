import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bundleProgram, pluginProgram, programs } from "../../../images/bundle.ts";
import { choosePort } from "../../../local/process/free-port.ts";
import { waitFor } from "../../../local/process/wait.ts";
import { holdProfiler, takeBusyProfile, takeHeapProfile } from "../../support/profiles.ts";

let folder: string;
let port: number;
const children: ChildProcess[] = [];

const kubeconfig = `
apiVersion: v1
kind: Config
current-context: nowhere
clusters: [{ name: nowhere, cluster: { server: "http://127.0.0.1:1" } }]
contexts: [{ name: nowhere, context: { cluster: nowhere, user: nobody } }]
users: [{ name: nobody, user: {} }]
`;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "pprof-"));
  for (const name of ["controller", "plugins"]) mkdirSync(join(folder, name));
  writeFileSync(join(folder, "kubeconfig"), kubeconfig);
  writeFileSync(join(folder, "manager.cjs"), await bundleProgram(programs["manager.cjs"]));
  writeFileSync(join(folder, "barman-cloud.cjs"), await bundleProgram(pluginProgram));
  port = await choosePort();
});
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

/** The shipped program, which waits for an API server that is not there. */
async function start(program: keyof typeof commands, flags: readonly string[]) {
  const ports = await Promise.all([choosePort(), choosePort(), choosePort()]);
  const [statusPort, localPort, metricsPort] = ports.map(String);
  const child = spawn(process.execPath, [join(folder, `${program}.cjs`), ...commands[program], ...flags], {
    stdio: ["ignore", "ignore", "pipe"],
    env: {
      PATH: process.env["PATH"] ?? "",
      KUBECONFIG: join(folder, "kubeconfig"),
      CLUSTER_NAME: "c",
      POD_NAME: "c-1",
      NAMESPACE: "ns",
      PGDATA: join(folder, "pgdata"),
      SPOOL_DIRECTORY: join(folder, "spool"),
      PLUGIN_SOCKET_DIR: join(folder, "plugins"),
      CNPG_TS_ROOT: join(folder, "controller"),
      CNPG_TS_STATUS_PORT: statusPort,
      CNPG_TS_LOCAL_PORT: localPort,
      CNPG_TS_METRICS_PORT: metricsPort,
      CNPG_TS_PPROF_PORT: String(port),
    },
  });
  children.push(child);
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    log += text;
  });
  const says = (text: string) =>
    waitFor(`it says: ${text}`, async () => log.includes(text), {
      timeoutMs: 60_000,
      failure: () => (child.exitCode === null ? undefined : `it ended with ${child.exitCode}: ${log}`),
    });
  const stop = async (signal: NodeJS.Signals) => {
    const ended = once(child, "exit") as Promise<[number | null, string | null]>;
    child.kill(signal);
    return ended;
  };
  return { says, stop, log: () => log };
}

const commands = {
  manager: ["instance", "run"],
  "barman-cloud": ["instance"],
} as const;

const get = (path: string) => fetch(`http://127.0.0.1:${port}${path}`);

describe.each(["manager", "barman-cloud"] as const)("the profiler of %s", (program) => {
  const flags = () => (program === "barman-cloud" ? [`--kubeconfig=${join(folder, "kubeconfig")}`] : []);

  it("gives what the processor is used for and what is in use, to readers of pprof", async () => {
    const running = await start(program, [...flags(), "--pprof-server"]);
    await running.says("The profiler listens");
    const cpu = await takeBusyProfile(port, 2);
    expect(cpu.types).toEqual(["samples/count", "cpu/nanoseconds"]);
    expect(cpu.totals["cpu/nanoseconds"]).toBeGreaterThan(0);
    expect(cpu.durationNanos).toBeGreaterThanOrEqual(2e9);
    expect(cpu.functions.some((it) => it.endsWith(join(folder, `${program}.cjs`)))).toBe(true);
    const heap = await takeHeapProfile(port);
    expect(heap.types).toEqual(["inuse_space/bytes"]);
    expect(heap.totals["inuse_space/bytes"]).toBeGreaterThan(100_000);

    const index = await (await get("/debug/pprof/")).text();
    for (const name of ["profile?seconds=30", "heap"]) expect(index).toContain(`href="${name}"`);
    expect((await get("/debug/pprof/goroutine")).status).toBe(404);
    await running.stop("SIGKILL");
  });

  it("takes one CPU profile at a time, and gives up one that nobody waits for", async () => {
    const running = await start(program, [...flags(), "--pprof-server"]);
    await running.says("The profiler listens");
    const leave = new AbortController();
    const held = holdProfiler(port, leave.signal);
    await expect.poll(held.ask, { timeout: 30_000 }).toBe(409);
    leave.abort();
    await held.ended;
    await expect.poll(held.ask, { timeout: 30_000 }).toBe(200);
    await running.stop("SIGKILL");
  });

  it("is there only when it is asked for, and a port that is taken ends nothing", async () => {
    const taken = createServer((socket) => socket.end("no profiler"));
    await once(taken.listen(port, "127.0.0.1"), "listening");
    try {
      const running = await start(program, [...flags(), "--pprof-server"]);
      await running.says("There is no profiler");
      await running.says("EADDRINUSE");
      await running.says(usualWord[program]);
      await running.stop("SIGKILL");
    } finally {
      taken.close();
    }
    const usual = await start(program, flags());
    await usual.says(usualWord[program]);
    await expect(get("/debug/pprof/")).rejects.toThrow();
    expect(usual.log()).not.toContain("profiler");
    await usual.stop("SIGKILL");
  });
});

/** What each of them says when it has begun to work. */
const usualWord = {
  manager: "Starting webserver",
  "barman-cloud": "Starting barman cloud instance plugin",
};
