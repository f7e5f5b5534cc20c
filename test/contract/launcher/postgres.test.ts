import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { chmod, chown, readFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import pg from "pg";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ensureAptPackages } from "../../../images/apt.ts";
import type { FakeRuntime } from "./fake-runtime.ts";
import { Pod, sleep, until } from "./pod.ts";

let pod: Pod;
let runtime: FakeRuntime;
let pid: string;
let server: Server | undefined;
const clients: pg.Client[] = [];

const settings = (controller: string) => ({
  logging_collector: "on",
  log_destination: "csvlog",
  log_directory: join(controller, "log"),
  log_filename: "postgres",
  log_rotation_age: "0",
  log_rotation_size: "0",
  log_statement: "all",
  unix_socket_directories: controller,
  listen_addresses: "",
  archive_mode: "on",
  archive_command: `${controller}/manager wal-archive --log-destination ${controller}/log/postgres.json %p`,
});

beforeEach(async () => {
  await ensureAptPackages(["postgresql"]);
  const [major] = readdirSync("/usr/lib/postgresql").sort((a, b) => Number(b) - Number(a));
  const bin = `/usr/lib/postgresql/${major}/bin`;
  const id = (flag: string) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  const user = { uid: id("-u"), gid: id("-g") };
  pod = await Pod.start({ user });
  const pgdata = join(pod.data, "pgdata");
  mkdirSync(pgdata);
  await chown(pgdata, user.uid, user.gid);
  const initdb = [join(bin, "initdb"), "-D", pgdata, "--no-sync", "--auth=trust", "-U", "postgres"];
  execFileSync("setpriv", [`--reuid=${user.uid}`, `--regid=${user.gid}`, "--clear-groups", ...initdb], {
    stdio: "pipe",
  });
  ({ runtime } = await pod.greetedRuntime());
  const options = Object.entries(settings(pod.controller)).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const command = [join(bin, "postgres"), "-D", pgdata, ...options];
  runtime.send("spawn", "1", pgdata, String(command.length), ...command, "PATH=/usr/bin:/bin", "POD_NAME=pod-1");
  pid = (await runtime.frame("spawned"))[2] ?? "";
});
afterEach(async () => {
  for (const client of clients.splice(0)) await client.end().catch(() => {});
  server?.close();
  server = undefined;
  await pod.stop();
});

async function connect(): Promise<pg.Client> {
  for (let attempt = 1; ; attempt++) {
    const client = new pg.Client({ host: pod.controller, user: "postgres", database: "postgres" });
    client.on("error", () => {});
    try {
      await client.connect();
      clients.push(client);
      return client;
    } catch (error) {
      if (attempt === 100) throw error;
      await sleep(100);
    }
  }
}

it("goes on under log_statement = all while its runtime is dead: no session lost, no statement held up, archiving resumes", async () => {
  const client = await connect();
  const backend = (await client.query("SELECT pg_backend_pid() AS pid")).rows[0].pid;
  runtime.send("drain-stop");
  await runtime.frame("drained");
  await pod.stopRestarting();
  runtime.tell({ exit: 1 });
  await runtime.gone;

  // About 60 MB of log: far more than pipes and spill file take.
  const filler = "x".repeat(6000);
  let slowest = 0;
  for (let i = 0; i < 10_000; i++) {
    const started = performance.now();
    await client.query(`SELECT ${i} /* ${filler} */`);
    slowest = Math.max(slowest, performance.now() - started);
  }
  expect(slowest).toBeLessThan(2000);
  await client.query("CREATE TABLE t AS SELECT 1; SELECT pg_switch_wal()");
  await (await connect()).query("SELECT 1"); // new sessions too

  const archived: string[] = [];
  const listening = createServer((socket) =>
    socket.on("data", (chunk: Buffer) => {
      archived.push(chunk.toString("utf8", 4).split("\0")[1] ?? "");
      socket.end(Buffer.from("\0\0\0\x02" + "0\0", "latin1"));
    }),
  );
  server = listening;
  const socket = pod.path("ipc/wal.sock");
  await new Promise<void>((resolve) => listening.listen(socket, resolve));
  await chmod(socket, 0o666);
  await until("archiving", () => archived.length > 0, 30_000);
  expect(archived[0]).toMatch(/^pg_wal\/0000000100000000000000\d\d$/);
  await until("the statistics of it", async () => {
    const { rows } = await client.query("SELECT archived_count FROM pg_stat_archiver");
    return Number(rows[0].archived_count) > 0;
  });

  await pod.resumeRestarting();
  const next = await pod.greetedRuntime();
  expect(next.hello[2]).toBe(pid);
  next.runtime.send("drain-stop");
  const [, spill = "", dropped] = await next.runtime.frame("drained");
  expect(Number(dropped)).toBeGreaterThan(1000);
  expect((await readFile(spill, "latin1")).includes("statement: SELECT 0 /*")).toBe(true);
  await client.query("SELECT 'live again'");
  let live = "";
  await until("live log", async () => {
    live += await next.runtime.read(pod.path("log/postgres.csv"));
    return live.includes("live again");
  });
  expect((await client.query("SELECT pg_backend_pid() AS pid")).rows[0].pid).toBe(backend);
}, 120_000);

it("is gone by the deadline, backends in sessions of their own included, and the volume is free", async () => {
  const client = await connect();
  const busy = client.query("SELECT pg_sleep(60)").then(
    () => "done",
    () => "lost",
  );
  await sleep(300);
  runtime.send("deadline", "500");
  expect(await busy).toBe("lost");
  const next = await pod.greetedRuntime();
  expect((await next.runtime.frame("postmaster-exited")).slice(2)).toEqual(["-1", "9"]);
  expect(await next.runtime.shell("ps -e -o args= | grep -c '[p]ostgres' || true")).toBe("0\n");
});

it("is stopped fast by the launcher when no runtime comes up after SIGTERM", async () => {
  await connect(); // a smart stop would wait for this session
  await pod.stopRestarting();
  runtime.tell({ exit: 1 });
  await runtime.gone;
  const asked = Date.now();
  await pod.signal("SIGTERM");
  expect(await pod.exit).toBe(0);
  expect(Date.now() - asked).toBeLessThan(40_000); // ten seconds of hope, then no waiting for the archive
  const control = execFileSync(
    "sh",
    ["-c", `$(ls -d /usr/lib/postgresql/*/bin | tail -1)/pg_controldata ${pod.data}/pgdata`],
    {
      encoding: "utf8",
      env: { LC_ALL: "C", PATH: process.env["PATH"] },
    },
  );
  expect(control).toMatch(/Database cluster state:\s+shut down\n/);
});
