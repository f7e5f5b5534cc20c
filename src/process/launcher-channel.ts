import { Socket } from "node:net";
import type {
  HostState,
  LogSpill,
  PostmasterCommand,
  PostmasterExit,
  PostmasterHost,
} from "../ports/postmaster-host.ts";
import { childEnvironment } from "./child-environment.ts";
import { encodeFrame, FrameReader } from "./frame.ts";

const protocolVersion = "1";

interface Waiter {
  /** Verbs, or verb and id, that answer the request. */
  matches: (frame: readonly string[]) => boolean;
  resolve: (frame: string[]) => void;
  reject: (error: Error) => void;
}

/** The byte stream to the launcher; a socket in the pod, a duplex pair in tests. */
export interface ChannelStream {
  write(data: Uint8Array): unknown;
  on(event: "data", handler: (chunk: Buffer) => void): unknown;
  on(event: "close", handler: () => void): unknown;
  on(event: "error", handler: (error: Error) => void): unknown;
}

function parsePostmasterExit(frame: readonly string[]): PostmasterExit {
  const [, pid, code, signal] = frame;
  const exitCode = Number(code);
  return { pid: Number(pid), code: exitCode < 0 ? null : exitCode, signal: Number(signal) };
}

/** Client of the launcher's control channel (ADR 0001). The channel can't be opened again: its end is the end of the runtime. */
export class LauncherChannel implements PostmasterHost {
  readonly #stream: ChannelStream;
  readonly #reader = new FrameReader();
  readonly #waiters = new Set<Waiter>();
  readonly #exitHandlers = new Set<(exit: PostmasterExit) => void>();
  /** Exits that came before anyone listened. */
  #earlyExits: PostmasterExit[] = [];
  #nextId = 1;
  /** Gives up the answer to the last request for probes. */
  #endProbe: AbortController | undefined;
  #closed: Error | undefined;
  readonly lost: Promise<void>;

  constructor(stream: ChannelStream) {
    this.#stream = stream;
    this.lost = new Promise((resolve) => {
      const close = (reason: string) => {
        if (this.#closed) return;
        this.#closed = new Error(`launcher channel closed: ${reason}`);
        for (const waiter of this.#waiters) waiter.reject(this.#closed);
        this.#waiters.clear();
        resolve();
      };
      stream.on("data", (chunk) => {
        try {
          for (const frame of this.#reader.push(chunk)) this.#receive(frame);
        } catch (error) {
          close((error as Error).message);
        }
      });
      stream.on("error", (error) => close(error.message));
      stream.on("close", () => close("the launcher is gone"));
    });
  }

  #receive(frame: string[]): void {
    if (frame[0] === "postmaster-exited") {
      const exit = parsePostmasterExit(frame);
      if (this.#exitHandlers.size === 0) this.#earlyExits.push(exit);
      for (const handler of this.#exitHandlers) handler(exit);
      return;
    }
    for (const waiter of this.#waiters) {
      if (!waiter.matches(frame)) continue;
      this.#waiters.delete(waiter);
      waiter.resolve(frame);
      return;
    }
  }

  #send(fields: readonly string[]): void {
    if (this.#closed) throw this.#closed;
    this.#stream.write(encodeFrame(fields));
  }

  #takeId(): string {
    const id = String(this.#nextId);
    this.#nextId += 1;
    return id;
  }

  /** Sends a request and waits for its answer; a signal gives the answer up, which then is nobody's. */
  #request(fields: readonly string[], matches: Waiter["matches"], signal?: AbortSignal): Promise<string[]> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = { matches, resolve, reject };
      this.#waiters.add(waiter);
      signal?.addEventListener("abort", () => {
        if (this.#waiters.delete(waiter)) reject(new Error("another request took the place of this one"));
      });
      try {
        this.#send(fields);
      } catch (error) {
        this.#waiters.delete(waiter);
        reject(error as Error);
      }
    });
  }

  async hello(): Promise<HostState> {
    const answer = await this.#request(["hello", protocolVersion], ([verb]) => verb === "hello");
    const [, version, pid, pending, , , deadline, killed, note] = answer;
    if (version !== protocolVersion) {
      throw new Error(
        `launcher speaks protocol ${version}, this runtime ${protocolVersion}: copy both from one release`,
      );
    }
    return {
      postmasterPid: Number(pid) > 0 ? Number(pid) : undefined,
      pendingSignal: pending === "TERM" || pending === "INT" ? pending : undefined,
      ...(Number(deadline) > 0 ? { deadlineMs: Number(deadline) } : {}),
      ...(killed === "deadline" || killed === "disk" ? { killed } : {}),
      ...(note ? { note } : {}),
    };
  }

  async takeLogs(): Promise<LogSpill> {
    const [, path, dropped] = await this.#request(["drain-stop"], ([verb]) => verb === "drained");
    return { path: path === "" ? undefined : path, droppedLines: Number(dropped ?? 0) };
  }

  async spawn(command: PostmasterCommand): Promise<number> {
    const id = this.#takeId();
    const environment = Object.entries(childEnvironment(command.env)).map(([name, value]) => `${name}=${value}`);
    const answer = await this.#request(
      ["spawn", id, command.cwd, String(command.argv.length), ...command.argv, ...environment],
      (frame) => (frame[0] === "spawned" || frame[0] === "error") && frame[1] === id,
    );
    if (answer[0] === "error")
      throw new Error(`launcher did not start ${command.argv[0]}: ${answer[2] ?? "no reason"}`);
    return Number(answer[2]);
  }

  onPostmasterExit(handler: (exit: PostmasterExit) => void): () => void {
    this.#exitHandlers.add(handler);
    const early = this.#earlyExits;
    this.#earlyExits = [];
    for (const exit of early) handler(exit);
    return () => this.#exitHandlers.delete(handler);
  }

  setDeadline(ms: number): void {
    this.#send(["deadline", String(Math.max(0, Math.round(ms)))]);
  }

  async probeVolumes(folders: readonly string[], limitMs: number): Promise<void> {
    this.#endProbe?.abort();
    this.#endProbe = new AbortController();
    const id = this.#takeId();
    const limit = String(Math.max(0, Math.round(limitMs)));
    await this.#request(
      ["probe", id, limit, ...folders],
      ([verb, of]) => verb === "probed" && of === id,
      this.#endProbe.signal,
    );
  }

  async keep(note: string): Promise<void> {
    const id = this.#takeId();
    await this.#request(["keep", id, note], ([verb, of]) => verb === "kept" && of === id);
  }

  async upgrade(staged: string): Promise<never> {
    const answer = await this.#request(["upgrade", staged], ([verb, what]) => verb === "error" && what === "upgrade");
    throw new Error(`the launcher refused the upgrade: ${answer[2] ?? "no reason"}`);
  }

  async exit(code: number): Promise<void> {
    this.#send(["exit", String(code)]);
    await this.lost;
  }
}

/** Opens the channel on the descriptor that the launcher handed over. */
export function openLauncherChannel(fd: number): LauncherChannel {
  return new LauncherChannel(new Socket({ fd, readable: true, writable: true }));
}
