import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { createHash, X509Certificate } from "node:crypto";
import {
  chownSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { bundleProgram, programs } from "../../../images/bundle.ts";
import { buildLauncher } from "../../../launcher/build.ts";
import { claimFolder, removeAbandoned } from "../../../local/control-plane/abandoned.ts";
import { type ControlPlane, startControlPlane } from "../../../local/control-plane/control-plane.ts";
import { choosePort } from "../../../local/process/free-port.ts";
import { isAlive, type ProcessIdentity } from "../../../local/process/identity.ts";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import type { PostgresStatus } from "../../../src/api/pg-status.ts";
import { type Contained, dieWithParent, spawnContained } from "../../support/contained.ts";
import { createTestAuthority, type TestAuthority } from "../../support/tls-files.ts";
import { SwitchProxy } from "./switch-proxy.ts";

export const clusterName = "lab";
const namespace = "default";

function binFolder(): string {
  const [newest] = readdirSync("/usr/lib/postgresql").sort((a, b) => Number(b) - Number(a));
  if (!newest) throw new Error("no PostgreSQL under /usr/lib/postgresql: install the postgresql package");
  return `/usr/lib/postgresql/${newest}/bin`;
}

function postgresUser(): { uid: number; gid: number } {
  const id = (flag: string) => Number(execFileSync("id", [flag, "postgres"]).toString());
  return { uid: id("-u"), gid: id("-g") };
}

/** Waits until a condition gives a value; fails with its name after the limit. */
export async function until<T>(what: string, get: () => Promise<T | undefined | false>, limitMs = 30_000): Promise<T> {
  const end = Date.now() + limitMs;
  let last: unknown;
  for (;;) {
    try {
      const value = await get();
      if (value !== undefined && value !== false) return value;
    } catch (error) {
      last = error;
    }
    if (Date.now() > end) throw new Error(`${what}: not within ${limitMs} ms`, { cause: last });
    await sleep(20);
  }
}

function listProcesses(): { pid: number; folder: string; program: string; command: string }[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const [folder, program] = [readlinkSync(`/proc/${name}/cwd`), readlinkSync(`/proc/${name}/exe`)];
      return [{ pid: Number(name), folder, program, command: readFileSync(`/proc/${name}/cmdline`, "utf8") }];
    } catch {
      // Ended meanwhile, or a kernel thread.
      return [];
    }
  });
}

/** Number of a process in its own namespace. */
function innerPid(pid: number): string | undefined {
  try {
    return /^NSpid:.*\s(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  } catch {
    return undefined;
  }
}

/** Takes away what a test that was killed had mounted, so that its folder can go. */
function unmountAbandoned(): void {
  for (const line of readFileSync("/proc/mounts", "utf8").split("\n")) {
    const place = line.split(" ")[1] ?? "";
    const folder = place.startsWith(`${tmpdir()}/lab-`)
      ? place.slice(0, place.indexOf("/", tmpdir().length + 1))
      : undefined;
    if (folder === undefined || !existsSync(join(folder, "owner.json"))) continue;
    const owner = JSON.parse(readFileSync(join(folder, "owner.json"), "utf8")) as ProcessIdentity;
    if (!isAlive(owner)) execFileSync("umount", ["--lazy", place]);
  }
}

/** Commands of the Jobs, by their roles. */
const jobCommands = {
  initdb: "init",
  import: "init",
  join: "join",
  pgbasebackup: "pgbasebackup",
  "full-recovery": "restore",
} as const;

export interface LabOptions {
  instances?: number;
  spec?: Partial<Cluster["spec"]>;
}

/** A real API server with one Cluster, and the instance managers of its pods as processes on this host. */
export class Lab {
  readonly plane: ControlPlane;
  readonly root: string;
  readonly proxy: SwitchProxy;
  readonly bundle: string;
  readonly user = postgresUser();
  readonly binDir = binFolder();
  readonly #authority: TestAuthority;
  readonly #instances = new Map<string, LabInstance>();

  private constructor(plane: ControlPlane, root: string, proxy: SwitchProxy, authority: TestAuthority) {
    this.plane = plane;
    this.root = root;
    this.proxy = proxy;
    this.#authority = authority;
    this.bundle = join(root, "manager.cjs");
  }

  static async start(options: LabOptions = {}): Promise<Lab> {
    const plane = await startControlPlane();
    const undo: (() => Promise<unknown>)[] = [() => plane.stop()];
    try {
      unmountAbandoned();
      removeAbandoned(tmpdir(), "lab-");
      const root = mkdtempSync(join(tmpdir(), "lab-"));
      claimFolder(root);
      undo.unshift(async () => rmSync(root, { recursive: true, force: true }));
      const authority = await createTestAuthority();
      undo.unshift(() => authority.remove());
      const proxy = await SwitchProxy.start();
      undo.unshift(() => proxy.close());
      const lab = new Lab(plane, root, proxy, authority);
      await lab.#prepare(options);
      return lab;
    } catch (error) {
      for (const step of undo) await step().catch(() => undefined);
      throw error;
    }
  }

  async #prepare(options: LabOptions): Promise<void> {
    const { root, plane, user } = this;
    execFileSync("chmod", ["755", root]);
    writeFileSync(this.bundle, await bundleProgram(programs["manager.cjs"]));
    copyFileSync(plane.kubeconfig, join(root, "kubeconfig"));
    chownSync(join(root, "kubeconfig"), user.uid, user.gid);
    await plane.kubectl(["apply", "--server-side", "-f", "dist/crds.k8s.yaml"]);
    await plane.kubectl(["wait", "--for=condition=Established", "crd/clusters.postgresql.cnpg.io", "--timeout=60s"]);
    await this.#createObjects(options);
  }

  async #createObjects(options: LabOptions): Promise<void> {
    const server = await this.#authority.issue("lab-rw");
    const replication = await this.#authority.issue("streaming_replica");
    const operator = await this.#authority.issue("operator");
    writeFileSync(join(this.root, "operator.crt"), operator.cert);
    writeFileSync(join(this.root, "operator.key"), operator.key);
    const secret = (name: string, stringData: Record<string, string>, type = "Opaque") => ({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name },
      type,
      stringData,
    });
    const tls = (name: string, pair: { cert: string; key: string }) =>
      secret(name, { "tls.crt": pair.cert, "tls.key": pair.key }, "kubernetes.io/tls");
    await this.apply(
      secret("lab-ca", { "ca.crt": this.#authority.ca, "ca.key": "" }),
      tls("lab-server", server),
      tls("lab-replication", replication),
      secret("lab-app", { username: "app", password: "app-password" }, "kubernetes.io/basic-auth"),
      secret("lab-superuser", { username: "postgres", password: "su-password" }, "kubernetes.io/basic-auth"),
      { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name: clusterName }, spec: {} },
      {
        apiVersion: "postgresql.cnpg.io/v1",
        kind: "Cluster",
        metadata: { name: clusterName },
        spec: {
          instances: options.instances ?? 1,
          imageName: "localhost/postgresql:15",
          storage: { size: "1Gi" },
          bootstrap: { initdb: { database: "app", owner: "app" } },
          replicationSlots: { highAvailability: { enabled: true, slotPrefix: "_cnpg_" } },
          ...options.spec,
        },
      },
    );
    const names = Array.from({ length: options.instances ?? 1 }, (_, index) => `${clusterName}-${index + 1}`);
    await this.patchStatus({
      instanceNames: names,
      targetPrimary: `${clusterName}-1`,
      instancesStatus: { healthy: names },
    });
  }

  async apply(...objects: object[]): Promise<void> {
    const list = { apiVersion: "v1", kind: "List", items: objects };
    await this.plane.kubectl(["apply", "-n", namespace, "-f", "-"], JSON.stringify(list));
  }

  async cluster(): Promise<Cluster> {
    return JSON.parse(
      await this.plane.kubectl(["get", "cluster", clusterName, "-n", namespace, "-o", "json"]),
    ) as Cluster;
  }

  async patchStatus(status: NonNullable<Cluster["status"]>): Promise<void> {
    const body = JSON.stringify({ status });
    await this.plane.kubectl([
      "patch",
      "cluster",
      clusterName,
      "-n",
      namespace,
      "--subresource=status",
      "--type=merge",
      "-p",
      body,
    ]);
  }

  async patchCluster(patch: object): Promise<void> {
    await this.plane.kubectl([
      "patch",
      "cluster",
      clusterName,
      "-n",
      namespace,
      "--type=merge",
      "-p",
      JSON.stringify(patch),
    ]);
  }

  /** Fingerprint of the key in the operator's certificate, as the operator registers it. */
  operatorFingerprint(): string {
    const certificate = new X509Certificate(readFileSync(join(this.root, "operator.crt")));
    const key = certificate.publicKey.export({ type: "spki", format: "der" });
    return createHash("sha256").update(key).digest("hex");
  }

  async renewServerCertificate(): Promise<void> {
    const { cert, key } = await this.#authority.issue("lab-rw");
    const stringData = { "tls.crt": cert, "tls.key": key };
    await this.apply({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "lab-server" },
      type: "kubernetes.io/tls",
      stringData,
    });
  }

  async lease(): Promise<{ spec: Record<string, unknown>; metadata: { annotations?: Record<string, string> } }> {
    return JSON.parse(await this.plane.kubectl(["get", "lease", clusterName, "-n", namespace, "-o", "json"]));
  }

  /** The volume and ports of an instance; they outlive its processes. */
  async instance(name: string): Promise<LabInstance> {
    const known = this.#instances.get(name);
    if (known) return known;
    const made = new LabInstance(this, name, {
      postgres: await choosePort(),
      status: await choosePort(),
      local: await choosePort(),
      metrics: await choosePort(),
    });
    await made.installLauncher();
    this.#instances.set(name, made);
    return made;
  }

  /** Gives files to the user that the instances run as. */
  giveAway(...paths: string[]): void {
    for (const path of paths) chownSync(path, this.user.uid, this.user.gid);
  }

  /** Lets `-rw` lead to an instance, as the operator's labels would. */
  route(instance: LabInstance): void {
    this.proxy.target = instance.ports.postgres;
  }

  async stop(): Promise<void> {
    for (const instance of this.#instances.values()) await instance.remove();
    await this.proxy.close();
    await this.plane.stop();
    await this.#authority.remove();
    if (process.env["LAB_KEEP"]) process.stderr.write(`logs are kept in ${this.root}\n`);
    else rmSync(this.root, { recursive: true, force: true });
  }
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
  readonly lab: Lab;
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

  constructor(lab: Lab, name: string, ports: InstancePorts) {
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
    const command = [process.execPath, this.lab.bundle, "instance", jobCommands[role], ...args];
    const job = this.#start(command, this.#environment(`${this.name}-${role}`, "job"));
    this.#jobs.add(job);
    void job.exit.then(() => this.#jobs.delete(job));
    return job;
  }

  /** Runs another command of the manager in the same place and gives what it prints. */
  command(args: readonly string[]): string {
    const env = this.#environment(this.name, "command");
    return execFileSync(process.execPath, [this.lab.bundle, ...args], { env, ...this.lab.user }).toString();
  }

  /** The same without blocking this process, which may be what the command waits for; gives the exit code. */
  runCommand(args: readonly string[]): Promise<number> {
    const env = this.#environment(this.name, "command");
    const [program = "", ...before] = dieWithParent(this.lab.user);
    return new Promise((resolve) => {
      const all = [...before, process.execPath, this.lab.bundle, ...args];
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
      : this.#start([process.execPath, this.lab.bundle, ...args], environment);
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
    const script = `#!/bin/sh\nshift\nexec "${process.execPath}" "${this.lab.bundle}" "$@"\n`;
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
