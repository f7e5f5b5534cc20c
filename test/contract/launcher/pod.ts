import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { chmod, copyFile, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildLauncher } from "../../../launcher/build.ts";
import { claimFolder, removeAbandoned } from "../../../local/control-plane/abandoned.ts";
import { childrenOf } from "../../../local/process/processes.ts";
import { type Contained, spawnContained } from "../../support/contained.ts";
import { reachableNode } from "../../support/reachable-node.ts";
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
  private readonly contained: Contained;
  private readonly server: Server;
  readonly root: string;

  private constructor(root: string, data: string, server: Server, contained: Contained) {
    this.root = root;
    this.controller = join(root, "controller");
    this.data = data;
    this.server = server;
    this.contained = contained;
    this.exit = contained.exit;
    contained.process.stderr?.setEncoding("utf8").on("data", (text: string) => {
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
    removeAbandoned(tmpdir(), "cnpg-ts-pod-");
    const root = mkdtempSync(join(tmpdir(), "cnpg-ts-pod-"));
    claimFolder(root);
    const controller = join(root, "controller");
    const data = options.data ?? join(root, "data");
    await installPod(controller, { node: options.node, programs: root });
    await mkdir(data, { recursive: true });
    const control = join(root, "control.sock");
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(control, resolve));
    const { uid, gid } = options.user ?? { uid: 0, gid: 0 };
    if (options.user) {
      const own = [controller, control, ...(options.data === undefined ? [data] : [])];
      await runTool("chown", `${uid}:${gid}`, root);
      await runTool("chown", "-R", `${uid}:${gid}`, ...own);
    }
    const contained = spawnContained([join(controller, "manager"), ...(options.args ?? ["instance", "run"])], {
      stdio: ["ignore", "pipe", "pipe"],
      user: options.user,
      isInit: !options.plain,
      env: {
        PATH: process.env["PATH"] ?? "",
        PGDATA: join(data, "pgdata"),
        POD_NAME: "pod-1",
        FAKE_CONTROL: control,
        ...options.env,
      },
    });
    return new Pod(root, data, server, contained);
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
      const pid = this.innerPid();
      if (pid > 0) return pid;
      await sleep(10);
    }
  }

  private innerPid(): number {
    const { pid } = this.contained.process;
    return (pid === undefined ? [] : childrenOf(pid))[0] ?? 0;
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
    await this.contained.kill();
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

export interface InstallOptions {
  /** Text of `runtime/node`; the fake runtime when absent. */
  node?: string | undefined;
  /** Folder for what the fake runtime needs, which every user can enter. @default the pod's own */
  programs?: string;
}

/** Puts the launcher and a runtime into a folder. */
export async function installPod(controller: string, options: InstallOptions = {}): Promise<void> {
  const { node, programs = controller } = options;
  await mkdir(join(controller, "runtime"), { recursive: true });
  await copyFile(await buildLauncher(), join(controller, "manager"));
  // Without a lib folder the launcher starts `node` as it is, so it may be a script.
  const text = node ?? (await fakeRuntime(programs));
  await writeFile(join(controller, "runtime", "node"), text);
  await chmod(join(controller, "runtime", "node"), 0o755);
}

/** A script that is the fake runtime; what it needs is put into the folder. */
async function fakeRuntime(folder: string): Promise<string> {
  const program = join(folder, "fake-runtime.mjs");
  await copyFile(fixture, program);
  return `#!/bin/sh\nexec "${reachableNode(folder)}" "${program}" "$@"\n`;
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
