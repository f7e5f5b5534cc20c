import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { chmod, copyFile, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildLauncher } from "../../../launcher/build.ts";
import { FakeRuntime } from "./fake-runtime.ts";

const fixture = join(dirname(fileURLToPath(import.meta.url)), "fixtures", "fake-runtime.mjs");

export interface PodOptions {
  args?: string[];
  env?: Record<string, string>;
  /** Volume shared with another pod. */
  data?: string;
  /** Text of `runtime/node`; the fake runtime when absent. */
  node?: string;
  /** Do not run as PID 1 of a namespace. */
  plain?: boolean;
  /** Run as this user, who then owns the pod's folders. @default root */
  user?: { uid: number; gid: number };
}

/** A launcher as PID 1 of its own PID namespace, with the fake runtime and folders of its own. */
export class Pod {
  readonly controller: string;
  readonly data: string;
  readonly exit: Promise<number | string>;
  log = "";
  private readonly waiting: ((runtime: FakeRuntime) => void)[] = [];
  private readonly ready: FakeRuntime[] = [];
  private readonly process: ChildProcess;
  private readonly server: Server;
  private readonly root: string;

  private constructor(root: string, data: string, server: Server, child: ChildProcess) {
    this.root = root;
    this.controller = join(root, "controller");
    this.data = data;
    this.server = server;
    this.process = child;
    this.exit = new Promise((resolve) => child.on("close", (code, signal) => resolve(code ?? signal ?? "?")));
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.log += text;
    });
    server.on("connection", (socket) => {
      const runtime = new FakeRuntime(socket);
      void runtime.started.then(() => {
        const next = this.waiting.shift();
        if (next) next(runtime);
        else this.ready.push(runtime);
      });
    });
  }

  static async start(options: PodOptions = {}): Promise<Pod> {
    const root = mkdtempSync(join(tmpdir(), "cnpg-ts-pod-"));
    const controller = join(root, "controller");
    const data = options.data ?? join(root, "data");
    await installPod(controller, options.node);
    await mkdir(data, { recursive: true });
    const control = join(root, "control.sock");
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(control, resolve));
    const { uid, gid } = options.user ?? { uid: 0, gid: 0 };
    if (options.user) await runTool("chown", "-R", `${uid}:${gid}`, root);
    const become = options.user ? ["setpriv", `--reuid=${uid}`, `--regid=${gid}`, "--clear-groups"] : [];
    const command = [...become, join(controller, "manager"), ...(options.args ?? ["instance", "run"])];
    const inNamespace = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", ...command];
    const [program = "", ...args] = options.plain ? command : inNamespace;
    const child = spawn(program, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        PATH: process.env["PATH"] ?? "",
        PGDATA: join(data, "pgdata"),
        POD_NAME: "pod-1",
        FAKE_CONTROL: control,
        ...options.env,
      },
    });
    return new Pod(root, data, server, child);
  }

  /** The next runtime that the launcher starts (or has started). */
  runtime(): Promise<FakeRuntime> {
    const ready = this.ready.shift();
    return ready ? Promise.resolve(ready) : new Promise((resolve) => this.waiting.push(resolve));
  }

  /** A runtime that has said hello; `spill` is kept draining unless the test says drain-stop. */
  async greetedRuntime(): Promise<{ runtime: FakeRuntime; hello: string[] }> {
    const runtime = await this.runtime();
    runtime.tell({ listen: true, frame: ["hello", "1"] });
    return { runtime, hello: await runtime.frame("hello") };
  }

  /** PID of the launcher as seen from here. */
  async pid(): Promise<number> {
    for (;;) {
      const pid = await this.innerPid();
      if (pid > 0) return pid;
      await sleep(10);
    }
  }

  private async innerPid(): Promise<number> {
    const outer = this.process.pid ?? 0;
    const children = await readFile(`/proc/${outer}/task/${outer}/children`, "utf8").catch(() => "");
    return Number.parseInt(children, 10) || 0;
  }

  async signal(name: NodeJS.Signals): Promise<void> {
    process.kill(await this.pid(), name);
  }

  /** From now on every runtime ends at once, until `resumeRestarting`. */
  async stopRestarting(): Promise<void> {
    await rename(this.path("runtime/node"), this.path("runtime/node.aside"));
  }

  async resumeRestarting(): Promise<void> {
    await rename(this.path("runtime/node.aside"), this.path("runtime/node"));
  }

  path(name: string): string {
    return join(this.controller, name);
  }

  logLines(): Record<string, string>[] {
    return this.log
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line) as Record<string, string>);
  }

  async stop(): Promise<void> {
    // A change of user takes the "die with the parent" mark away, so PID 1 is killed by name.
    if (this.process.exitCode === null && this.process.signalCode === null) {
      const pid = await this.innerPid();
      if (pid > 0) process.kill(pid, "SIGKILL");
    }
    this.process.kill("SIGKILL");
    await this.exit;
    this.server.close();
    await rm(this.root, { recursive: true, force: true });
  }
}

function runTool(command: string, ...args: string[]): Promise<void> {
  return new Promise((resolve, reject) =>
    spawn(command, args).on("close", (code) =>
      code === 0 ? resolve() : reject(new Error(`${command} ${args.join(" ")}: exit ${code}`)),
    ),
  );
}

/** Puts the launcher and a runtime into a folder. */
export async function installPod(controller: string, node?: string): Promise<void> {
  await mkdir(join(controller, "runtime"), { recursive: true });
  await copyFile(await buildLauncher(), join(controller, "manager"));
  // Without a lib folder the launcher starts `node` as it is, so it may be a script.
  const text = node ?? `#!/bin/sh\nexec "${process.execPath}" "${fixture}" "$@"\n`;
  await writeFile(join(controller, "runtime", "node"), text);
  await chmod(join(controller, "runtime", "node"), 0o755);
}

export const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Waits until a condition holds; fails after ten seconds with its name. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, limitMs = 10_000): Promise<void> {
  const end = Date.now() + limitMs;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`${what}: not within ${limitMs} ms`);
    await sleep(20);
  }
}
