import { type ChildProcess, execFile, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { appendFile, chmod, chown, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { pingServer } from "../../src/sql/ping.ts";
import { dieWithParent } from "./contained.ts";

export interface StartPostgresOptions {
  /** Lines for `postgresql.conf`, by name. */
  settings?: Readonly<Record<string, string>>;
  /** Replaces `pg_hba.conf`; trust for everybody otherwise. */
  hba?: string;
  /** Replaces `pg_ident.conf`. */
  ident?: string;
  /** Further flags for `initdb`. */
  initdbFlags?: readonly string[];
  /** Clones this server and follows it instead of making a new one. */
  standbyOf?: PostgresServer;
  /** Folder with the server programs. @default the newest of Debian's */
  binDir?: string;
  /** Called with the data folder after it was made and before the server starts. */
  prepare?: (dataDir: string, user: PostgresServer["user"]) => Promise<void>;
}

/** A real server of its own, with superuser `postgres` trusted on the socket and on 127.0.0.1. */
export interface PostgresServer {
  readonly socketDir: string;
  readonly port: number;
  readonly dataDir: string;
  readonly binDir: string;
  readonly pid: number;
  /** The user it runs as. */
  readonly user: { uid: number; gid: number; name: string };
  /** What it wrote to stdout and stderr. */
  output(): string;
  /** Stops it fast and starts it again. */
  restart(): Promise<void>;
  /** Stops it fast and removes its files. */
  stop(): Promise<void>;
}

const run = promisify(execFile);

/** Makes and starts a PostgreSQL server; installs the package when the machine has none. */
export async function startPostgres(options: StartPostgresOptions = {}): Promise<PostgresServer> {
  const binDir = options.binDir ?? (await findBinaries());
  const user = serverUser();
  // Short, because a socket's path may have 107 characters.
  const base = await mkdtemp(join(tmpdir(), "pg-"));
  await chmod(base, 0o755);
  await chown(base, user.uid, user.gid);
  const dataDir = join(base, "data");
  const as = { uid: user.uid, gid: user.gid, env: environment(base), cwd: base };
  const port = await freePort();
  if (options.standbyOf) {
    const primary = options.standbyOf;
    const source = `host=${primary.socketDir} port=${primary.port} user=postgres application_name=standby-${port}`;
    await run(join(binDir, "pg_basebackup"), ["-D", dataDir, "-R", "-X", "stream", "-c", "fast", "-d", source], as);
  } else {
    const flags = ["-D", dataDir, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
    await run(join(binDir, "initdb"), [...flags, ...(options.initdbFlags ?? [])], as);
  }
  await writeConfiguration(dataDir, base, port, options);
  await options.prepare?.(dataDir, user);
  // Tied to this process, so that it does not outlive a test that is killed.
  const [program = "", ...tied] = dieWithParent(process.getuid?.() === 0 ? user : undefined);
  const launch = () =>
    spawn(program, [...tied, join(binDir, "postgres"), "-D", dataDir], {
      env: as.env,
      cwd: as.cwd,
      stdio: ["ignore", "pipe", "pipe"],
    });
  return superviseServer(launch, { base, dataDir, binDir, port, user });
}

async function superviseServer(
  launch: () => ChildProcess,
  facts: { base: string; dataDir: string; binDir: string; port: number; user: PostgresServer["user"] },
): Promise<PostgresServer> {
  let output = "";
  const keep = (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-100_000);
  };
  const start = () => {
    const started = launch();
    started.stdout?.on("data", keep);
    started.stderr?.on("data", keep);
    return started;
  };
  let child = start();
  async function halt(): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.kill("SIGINT");
    const late = setTimeout(() => child.kill("SIGQUIT"), 20_000);
    await exited;
    clearTimeout(late);
  }
  const server: PostgresServer = {
    socketDir: facts.base,
    port: facts.port,
    dataDir: facts.dataDir,
    binDir: facts.binDir,
    get pid() {
      return child.pid ?? 0;
    },
    user: facts.user,
    output: () => output,
    async restart() {
      await halt();
      child = start();
      await waitUntilReady(server, child);
    },
    async stop() {
      await halt();
      await rm(facts.base, { recursive: true, force: true });
    },
  };
  await waitUntilReady(server, child);
  return server;
}

async function waitUntilReady(server: PostgresServer, child: ChildProcess): Promise<void> {
  for (let attempt = 0; attempt < 600; attempt += 1) {
    if (child.exitCode !== null || child.signalCode !== null) break;
    if ((await pingServer({ socketDir: server.socketDir, port: server.port })) === "accepting") return;
    await sleep(100);
  }
  const output = server.output();
  await server.stop();
  throw new Error(`PostgreSQL did not start: ${output}`);
}

async function writeConfiguration(
  dataDir: string,
  base: string,
  port: number,
  options: StartPostgresOptions,
): Promise<void> {
  const settings = {
    port: String(port),
    listen_addresses: "127.0.0.1",
    unix_socket_directories: base,
    fsync: "off",
    ...options.settings,
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`);
  await appendFile(join(dataDir, "postgresql.conf"), `\n${lines.join("")}`);
  if (options.hba !== undefined) await writeFile(join(dataDir, "pg_hba.conf"), options.hba);
  if (options.ident !== undefined) await writeFile(join(dataDir, "pg_ident.conf"), options.ident);
}

function environment(home: string): Record<string, string> {
  return { PATH: process.env["PATH"] ?? "/usr/bin:/bin", HOME: home, LC_ALL: "C.UTF-8", TZ: "UTC" };
}

/** PostgreSQL refuses to run as root; its own user comes with the package. */
function serverUser(): PostgresServer["user"] {
  if (process.getuid?.() !== 0) return { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0, name: "" };
  const users = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"));
  const found = users.find(([name]) => name === "postgres") ?? users.find(([name]) => name === "nobody");
  if (!found?.[0]) throw new Error("neither user postgres nor nobody exists to run PostgreSQL as");
  return { uid: Number(found[2]), gid: Number(found[3]), name: found[0] };
}

async function findBinaries(): Promise<string> {
  const found = installedBinaries();
  if (found) return found;
  // The machine's own package; a failure to install fails the test, it is not skipped.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  await run("apt-get", ["install", "-y", "--no-install-recommends", "postgresql"], { env }).catch(async () => {
    await run("apt-get", ["update"], { env });
    await run("apt-get", ["install", "-y", "--no-install-recommends", "postgresql"], { env });
  });
  const installed = installedBinaries();
  if (!installed) throw new Error("package postgresql is installed but /usr/lib/postgresql holds no server");
  return installed;
}

function installedBinaries(): string | undefined {
  const root = "/usr/lib/postgresql";
  if (!existsSync(root)) return undefined;
  const versions = readdirSync(root)
    .filter((name) => existsSync(join(root, name, "bin/postgres")))
    .sort((left, right) => Number(left) - Number(right));
  const newest = versions.at(-1);
  return newest === undefined ? undefined : join(root, newest, "bin");
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      const port = typeof address === "object" && address ? address.port : 0;
      probe.close(() => resolve(port));
    });
  });
}
