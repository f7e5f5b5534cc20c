import { accessSync, constants } from "node:fs";
import { writeFile } from "node:fs/promises";
import { annotations } from "../api/labels.ts";
import type { StopMode } from "../plan/instance/shutdown.ts";
import type { PostmasterExit, PostmasterHost } from "../ports/postmaster-host.ts";
import { buildExtensionEnvironment } from "../postgres/image-extensions.ts";
import { pingServer } from "../sql/ping.ts";
import type { InstanceContext } from "./instance-context.ts";
import { isProgram, killOrphans } from "./orphans.ts";

const stopSignals: Record<StopMode, NodeJS.Signals> = { smart: "SIGTERM", fast: "SIGINT", immediate: "SIGQUIT" };

/** Anonymous private pages, ELF headers and private huge pages, not PostgreSQL's shared buffers. */
const defaultCoredumpFilter = "0x31";

/** Pause between looks at a server that is coming up. */
const startPollMs = 25;

/** Full path of a program, so that the launcher need not search for it. */
export function findProgram(name: string, path: string): string {
  if (name.includes("/")) return name;
  for (const folder of path.split(":")) {
    const candidate = `${folder || "."}/${name}`;
    try {
      accessSync(candidate, constants.X_OK);
      return candidate;
    } catch {
      // Next folder.
    }
  }
  throw new Error(`${name} is not in PATH (${path}): the image has no PostgreSQL, or PATH lacks its folder`);
}

/** Environment of the postmaster: ours, its place in the out-of-memory order, and what image extensions need. */
export function postmasterEnvironment(context: InstanceContext): Record<string, string> {
  // What the launcher tells this process is not for PostgreSQL.
  const { CNPG_LAUNCHER_FD: _fd, ...environment } = context.settings.environment;
  const extensions = context.state.cluster?.status?.pgDataImageInfo?.extensions ?? [];
  return {
    ...environment,
    PG_OOM_ADJUST_FILE: "/proc/self/oom_score_adj",
    PG_OOM_ADJUST_VALUE: "0",
    ...buildExtensionEnvironment(extensions, "/extensions", environment),
  };
}

/** The one postmaster of this instance, whoever started it. */
export class Postmaster {
  readonly #context: InstanceContext;
  readonly #host: PostmasterHost;
  readonly #exitHandlers = new Set<(exit: PostmasterExit) => void>();
  #pid: number | undefined;
  #startedAt = 0;
  /** Exits of processes that we had not heard of yet: the answer to `spawn` and the exit may come in one piece. */
  readonly #unmatchedExits = new Map<number, PostmasterExit>();
  /** A postmaster whose end we saw before the host told it. */
  #foundGone: number | undefined;

  constructor(context: InstanceContext, host: PostmasterHost) {
    this.#context = context;
    this.#host = host;
    host.onPostmasterExit((exit) => {
      if (this.#pid === exit.pid) this.#end(exit);
      else if (this.#foundGone === exit.pid) this.#foundGone = undefined;
      else this.#unmatchedExits.set(exit.pid, exit);
    });
  }

  #end(exit: PostmasterExit): void {
    this.#pid = undefined;
    for (const handler of [...this.#exitHandlers]) handler(exit);
  }

  /** Reports an end that was told before we knew the process. */
  #endIfTold(pid: number): void {
    const exit = this.#unmatchedExits.get(pid);
    this.#unmatchedExits.clear();
    if (exit && this.#pid === pid) this.#end(exit);
  }

  get pid(): number | undefined {
    return this.#pid;
  }

  /** Wall clock of the last start by this manager, 0 for an adopted postmaster. */
  get startedAt(): number {
    return this.#startedAt;
  }

  onExit(handler: (exit: PostmasterExit) => void): () => void {
    this.#exitHandlers.add(handler);
    return () => this.#exitHandlers.delete(handler);
  }

  /** Takes over a postmaster that runs already. */
  adopt(pid: number): void {
    this.#pid = pid;
    this.#context.logger.info("Adopted the running postmaster", { postMasterPID: pid });
    this.#endIfTold(pid);
  }

  /** Starts the postmaster; resolves when the process is there, which is long before it takes connections. */
  async start(): Promise<void> {
    if (this.#pid !== undefined) return;
    const { context } = this;
    await this.#clearLeftovers();
    await context.files.chmod(context.paths.pgData, 0o700);
    await context.files.makeDirectory(context.paths.socketDir);
    await context.data.logControl(context.logger, "postmaster start up");
    const { environment, postgresName } = context.settings;
    const program = findProgram(postgresName, environment["PATH"] ?? "/usr/bin:/bin");
    // What is kept from before is about other processes, whose numbers may come again.
    this.#unmatchedExits.clear();
    const pid = await this.#host.spawn({
      cwd: "/",
      argv: [program, "-D", context.paths.pgData],
      env: postmasterEnvironment(context),
    });
    this.#pid = pid;
    this.#startedAt = context.clock.now();
    context.logger.info("postmaster started", { postMasterPID: pid });
    this.#endIfTold(pid);
    if (this.#pid === pid) await this.#limitCoreDumps(pid);
  }

  private get context(): InstanceContext {
    return this.#context;
  }

  /** Keeps shared memory out of core dumps; backends take the setting over from the postmaster. */
  async #limitCoreDumps(pid: number): Promise<void> {
    const filter =
      this.#context.state.cluster?.metadata.annotations?.[annotations.coredumpFilter] || defaultCoredumpFilter;
    try {
      await writeFile(`/proc/${pid}/coredump_filter`, filter);
    } catch (error) {
      this.#context.logger.warning("The core-dump filter could not be set", { filter, error });
    }
  }

  /** Removes what a postmaster of an earlier life left; none runs now, so its pid may belong to anyone. */
  async #clearLeftovers(): Promise<void> {
    const { files, paths, settings, logger } = this.#context;
    const killed = await killOrphans(paths.pgData, settings.postgresName);
    if (killed > 0) logger.info("Killed processes of a former postmaster", { count: killed });
    if (!(await files.exists(paths.postmasterPid))) return;
    await files.remove(paths.postmasterPid);
    for (const name of await files.list(paths.socketDir)) {
      if (name.startsWith(".s.PGSQL.")) await files.remove(`${paths.socketDir}/${name}`);
    }
  }

  signal(signal: NodeJS.Signals): void {
    const pid = this.#pid;
    if (pid === undefined) return;
    try {
      process.kill(pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
      // Gone and reaped. The host's word about it may never come, and whoever waits for the end would wait for good.
      queueMicrotask(() => this.#endAsFound(pid));
    }
  }

  #endAsFound(pid: number): void {
    if (this.#pid !== pid) return;
    this.#foundGone = pid;
    this.#end({ pid, code: null, signal: 0 });
  }

  stop(mode: StopMode): void {
    this.signal(stopSignals[mode]);
  }

  reload(): void {
    this.signal("SIGHUP");
  }

  /** Ends the WAL receiver, which `pg_terminate_backend` does not take; PostgreSQL starts another one. */
  async endReceiver(pid: number): Promise<void> {
    if (!(await isProgram(pid, this.#context.settings.postgresName))) return;
    try {
      process.kill(pid, "SIGTERM");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }

  /** Resolves when the postmaster has ended; at once when there is none. */
  exited(): Promise<void> {
    if (this.#pid === undefined) return Promise.resolve();
    return new Promise((resolve) => {
      const stop = this.onExit(() => {
        stop();
        resolve();
      });
    });
  }

  /** Whether the server takes connections, as pg_isready tells it. */
  async isAccepting(): Promise<boolean> {
    if (this.#pid === undefined) return false;
    const { paths, settings } = this.#context;
    return (await pingServer({ socketDir: paths.socketDir, port: settings.postgresPort })) === "accepting";
  }

  /** Resolves with true once the server takes connections, with false when it ended before or the signal came. */
  async waitUntilAccepting(signal?: AbortSignal): Promise<boolean> {
    while (this.#pid !== undefined && !signal?.aborted) {
      if (/^(ready|standby)/.test(await this.#statusLine()) && (await this.isAccepting())) return true;
      await this.#context.clock.sleep(startPollMs);
    }
    return false;
  }

  /** What the postmaster wrote about itself: `starting`, `ready`, `standby` or `stopping`; asking costs no backend. */
  async #statusLine(): Promise<string> {
    const text = await this.#context.files.read(this.#context.paths.postmasterPid);
    return text?.split("\n")[7]?.trim() ?? "";
  }

  /** Whether the pid that the host told is a postmaster at all. */
  static isPostmaster(pid: number, program: string): Promise<boolean> {
    return isProgram(pid, program);
  }
}
