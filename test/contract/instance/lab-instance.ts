import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import {
  chownSync,
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { buildLauncher } from "../../../launcher/build.ts";
import type { PostgresStatus } from "../../../src/api/pg-status.ts";
import { type Contained, dieWithParent, spawnContained } from "../../support/contained.ts";
import { innerPid, listProcesses } from "./processes.ts";
import { until } from "./until.ts";

export const clusterName = "lab";
export const namespace = "default";

/** Commands of the Jobs, by their roles. */
const jobCommands = {
  initdb: "init",
  import: "init",
  join: "join",
  pgbasebackup: "pgbasebackup",
  "full-recovery": "restore",
  "snapshot-recovery": "restoresnapshot",
} as const;

/** What the instances of one lab share. */
export interface InstanceHost {
  readonly root: string;
  /** The manager's program. */
  readonly bundle: string;
  /** Node, where the user can reach it. */
  readonly node: string;
  readonly user: { uid: number; gid: number };
  /** Folder of PostgreSQL's programs. */
  readonly binDir: string;
  /** What `-rw` leads to. */
  readonly proxy: { readonly port: number };
}

interface InstancePorts {
  postgres: number;
  status: number;
  local: number;
  metrics: number;
}

export interface RunOptions {
  /** Under the real launcher as PID 1 of a namespace of its own. */
  launcher?: boolean;
  /** UID of the pod; the same for each container of one pod. */
  podUid?: string;
  /** Variables beside the usual ones, or instead of them. */
  environment?: Record<string, string>;
}

/** One instance: a data volume, a scratch volume and at most one running manager. */
export class LabInstance {
  readonly lab: InstanceHost;
  readonly name: string;
  readonly ports: InstancePorts;
  readonly volume: string;
  readonly scratch: string;
  readonly logFile: string;
  #running: Contained | undefined;
  #exit: Promise<number | string> | undefined;
  readonly #jobs = new Set<Contained>();
  #underLauncher = false;
  #kept = false;

  constructor(lab: InstanceHost, name: string, ports: InstancePorts) {
    this.lab = lab;
    this.name = name;
    this.ports = ports;
    this.logFile = join(lab.root, `${name}.log`);
    this.volume = join(lab.root, name, "data");
    this.scratch = join(lab.root, name, "c");
    for (const folder of [join(lab.root, name), this.volume, this.scratch]) {
      mkdirSync(folder, { recursive: true });
      chownSync(folder, lab.user.uid, lab.user.gid);
    }
  }

  /** Everything its programs have logged so far. */
  get output(): string {
    return readFileSync(this.logFile, "utf8");
  }

  get pgData(): string {
    return join(this.volume, "pgdata");
  }

  /** Where its tablespaces' volumes would be mounted. */
  get tablespaces(): string {
    return join(this.lab.root, this.name, "tablespaces");
  }

  /** Where plugins of its pod would have their sockets. */
  get pluginFolder(): string {
    return join(this.scratch, "plugins");
  }

  get running(): boolean {
    return this.#running !== undefined;
  }

  #environment(podName: string, podUid: string): Record<string, string> {
    return {
      PATH: `${this.lab.binDir}:/usr/bin:/bin`,
      KUBECONFIG: join(this.lab.root, "kubeconfig"),
      PGDATA: this.pgData,
      POD_NAME: podName,
      NAMESPACE: namespace,
      CLUSTER_NAME: clusterName,
      PGPORT: String(this.ports.postgres),
      PGHOST: join(this.scratch, "run"),
      TMPDIR: join(this.scratch, "tmp"),
      CNPG_TS_ROOT: this.scratch,
      CNPG_TS_TABLESPACES: this.tablespaces,
      CNPG_TS_STATUS_PORT: String(this.ports.status),
      CNPG_TS_LOCAL_PORT: String(this.ports.local),
      CNPG_TS_METRICS_PORT: String(this.ports.metrics),
      CNPG_TS_PRIMARY_HOST: "127.0.0.1",
      CNPG_TS_PRIMARY_PORT: String(this.lab.proxy.port),
      CNPG_TS_POD_UID: podUid,
      PLUGIN_SOCKET_DIR: this.pluginFolder,
      LC_ALL: "C.UTF-8",
    };
  }

  #start(command: readonly string[], environment: Record<string, string>, isInit = false): Contained {
    // A file never fills up: with a pipe, a test that waits for psql would stop the server by not reading its log.
    const log = openSync(this.logFile, "a");
    const started = spawnContained(command, {
      env: environment,
      user: this.lab.user,
      stdio: ["ignore", log, log],
      isInit,
    });
    closeSync(log);
    return started;
  }

  /** Runs a job's command to its end and gives the exit code. */
  job(role: keyof typeof jobCommands, args: readonly string[]): Contained {
    const command = [this.lab.node, this.lab.bundle, "instance", jobCommands[role], ...args];
    const job = this.#start(command, this.#environment(`${this.name}-${role}`, "job"));
    this.#jobs.add(job);
    void job.exit.then(() => this.#jobs.delete(job));
    return job;
  }

  /** Runs another command of the manager in the same place and gives what it prints. */
  command(args: readonly string[]): string {
    const env = this.#environment(this.name, "command");
    return execFileSync(this.lab.node, [this.lab.bundle, ...args], { env, ...this.lab.user }).toString();
  }

  /** The same without blocking this process, which may be what the command waits for; gives the exit code. */
  runCommand(args: readonly string[]): Promise<number> {
    const env = this.#environment(this.name, "command");
    const [program = "", ...before] = dieWithParent(this.lab.user);
    return new Promise((resolve) => {
      const all = [...before, this.lab.node, this.lab.bundle, ...args];
      execFile(program, all, { env }, (error) => resolve(Number(error?.code ?? 0)));
    });
  }

  /** Starts the manager: alone, or under the real launcher as PID 1 of its namespace. */
  run(options: RunOptions = {}): void {
    if (this.#running) throw new Error(`${this.name} runs already`);
    const usual = this.#environment(this.name, options.podUid ?? `uid-of-${this.name}`);
    const environment = { ...usual, ...options.environment };
    const args = ["instance", "run", "--status-port-tls", "--log-level=info"];
    this.#underLauncher = options.launcher ?? false;
    const started = options.launcher
      ? this.#start([join(this.scratch, "manager"), ...args], environment, true)
      : this.#start([this.lab.node, this.lab.bundle, ...args], environment);
    this.#running = started;
    this.#exit = started.exit.then((result) => {
      this.#running = undefined;
      return result;
    });
  }

  /** Puts the real launcher, and a runtime folder that leads to this checkout's bundle, where a pod has them. */
  async installLauncher(): Promise<void> {
    copyFileSync(await buildLauncher(), join(this.scratch, "manager"));
    mkdirSync(join(this.scratch, "runtime"), { recursive: true });
    const script = `#!/bin/sh\nshift\nexec "${this.lab.node}" "${this.lab.bundle}" "$@"\n`;
    writeFileSync(join(this.scratch, "runtime", "node"), script, { mode: 0o755 });
    execFileSync("chmod", ["755", join(this.scratch, "manager")]);
  }

  get exit(): Promise<number | string> {
    return this.#exit ?? Promise.resolve("not started");
  }

  /** Signals the first process of ours, as the end of a pod does. */
  signal(signal: NodeJS.Signals): void {
    if (this.#underLauncher) this.signalLauncher(signal);
    else this.signalRuntime(signal);
  }

  /** Kills manager and PostgreSQL, as the end of a container does; resolves when nothing of them is left. */
  async kill(): Promise<void> {
    this.#kept = false;
    await this.#running?.kill();
  }

  /** Kills everything that was started here. */
  async remove(): Promise<void> {
    await this.kill();
    await Promise.all([...this.#jobs].map((job) => job.kill()));
  }

  killPostgres(): void {
    for (const pid of this.postgresProcesses()) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // Ended meanwhile.
      }
    }
  }

  /** Starts the manager, and starts it again whenever it ends, as the kubelet does. */
  keep(options: RunOptions = {}): void {
    this.#kept = true;
    this.run(options);
    void this.#exit?.then(() => {
      if (this.#kept) this.keep(options);
    });
  }

  /** Lets the manager end without being started again. */
  release(): void {
    this.#kept = false;
  }

  /** Server processes of this instance, by their working folder. */
  postgresProcesses(): number[] {
    return listProcesses().flatMap(({ pid, folder, program }) =>
      folder === this.pgData && program.endsWith("/postgres") ? [pid] : [],
    );
  }

  /** Kills the manager's runtime under a launcher, which is to start another one. */
  killRuntime(): void {
    this.signalRuntime("SIGKILL");
  }

  signalRuntime(signal: NodeJS.Signals): void {
    for (const { pid, command } of listProcesses()) {
      // The shell that waits for the manager has the same words in its own command.
      const isRuntime = command.split("\0").slice(0, 3).includes(this.lab.bundle);
      if (isRuntime && this.#owns(pid)) process.kill(pid, signal);
    }
  }

  signalLauncher(signal: NodeJS.Signals): void {
    const launcher = join(this.scratch, "manager");
    for (const { pid, program } of listProcesses()) if (program === launcher) process.kill(pid, signal);
  }

  /** The launcher, without its helpers; it keeps its number when it is replaced in place. */
  launcherPids(): number[] {
    const launcher = join(this.scratch, "manager");
    const running = listProcesses().filter(({ program }) => program === launcher);
    return running.flatMap(({ pid }) => (innerPid(pid) === "1" ? [pid] : []));
  }

  #owns(pid: number): boolean {
    return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(`CNPG_TS_ROOT=${this.scratch}`);
  }

  /** Number of the postmaster as seen from here, not in its own namespace. */
  postmasterPid(): number {
    const inside = readFileSync(join(this.pgData, "postmaster.pid"), "utf8").split("\n")[0] ?? "";
    const pid = this.postgresProcesses().find((candidate) => innerPid(candidate) === inside);
    if (pid === undefined) throw new Error(`${this.name}: no process is the postmaster ${inside}`);
    return pid;
  }

  /** GET from the status port, with or without the operator's certificate. */
  get(path: string, options: { operator?: boolean; method?: string } = {}): Promise<{ status: number; body: string }> {
    const certificate = options.operator
      ? {
          cert: readFileSync(join(this.lab.root, "operator.crt")),
          key: readFileSync(join(this.lab.root, "operator.key")),
        }
      : {};
    return new Promise((resolve, reject) => {
      const call = request(
        {
          host: "127.0.0.1",
          port: this.ports.status,
          path,
          method: options.method ?? "GET",
          rejectUnauthorized: false,
          agent: false,
          timeout: 5_000,
          ...certificate,
        },
        (response) => {
          let body = "";
          response.setEncoding("utf8").on("data", (text: string) => {
            body += text;
          });
          response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
        },
      );
      call.on("error", reject);
      call.on("timeout", () => call.destroy(new Error("timeout")));
      call.end();
    });
  }

  /** Serial number of the certificate that the status port shows. */
  peerSerial(): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connectTls({ host: "127.0.0.1", port: this.ports.status, rejectUnauthorized: false }, () => {
        const { serialNumber } = socket.getPeerCertificate();
        socket.destroy();
        resolve(serialNumber);
      });
      socket.on("error", reject);
    });
  }

  async metrics(): Promise<{ status: number; body: string }> {
    const answer = await fetch(`http://127.0.0.1:${this.ports.metrics}/metrics`);
    return { status: answer.status, body: await answer.text() };
  }

  /** What pg_controldata prints. */
  control(): string {
    return execFileSync(join(this.lab.binDir, "pg_controldata"), ["-D", this.pgData]).toString();
  }

  volumeEntries(): string[] {
    return readdirSync(this.volume);
  }

  async status(): Promise<PostgresStatus> {
    const { status, body } = await this.get("/pg/status");
    if (status !== 200) throw new Error(`${this.name}: ${status} ${body}`);
    return JSON.parse(body) as PostgresStatus;
  }

  ready(limitMs?: number): Promise<true> {
    return until(
      `${this.name} ready`,
      async () => (await this.get("/readyz")).status === 200 && (true as const),
      limitMs,
    );
  }

  #psqlCommand(sql: string, database: string): [string, string[]] {
    const [program = "", ...as] = dieWithParent(this.lab.user);
    const target = [
      "-h",
      join(this.scratch, "run"),
      "-p",
      String(this.ports.postgres),
      "-U",
      "postgres",
      "-d",
      database,
    ];
    return [program, [...as, join(this.lab.binDir, "psql"), "-XAtq", ...target, "-c", sql]];
  }

  /** Runs SQL as the superuser over the socket and gives the output's text. */
  psql(sql: string, database = "postgres"): string {
    const [program, args] = this.#psqlCommand(sql, database);
    try {
      // A server that is about to end may take a connection and never answer, while this process holds up what it waits for.
      const env = { ...process.env, PGCONNECT_TIMEOUT: "5" };
      return execFileSync(program, args, { stdio: ["ignore", "pipe", "pipe"], env })
        .toString()
        .trim();
    } catch (error) {
      throw new Error(`psql on ${this.name}: ${(error as { stderr?: Buffer }).stderr?.toString().trim() ?? error}`);
    }
  }

  /** A session that stays open while its statement runs. */
  session(sql: string): ChildProcess {
    const [program, args] = this.#psqlCommand(sql, "postgres");
    return spawn(program, args, { stdio: "ignore" });
  }
}
