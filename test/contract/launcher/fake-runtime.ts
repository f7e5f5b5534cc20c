import type { Socket } from "node:net";
import { createInterface } from "node:readline";

interface Message {
  hello?: number;
  argv?: string[];
  env?: Record<string, string>;
  channel?: boolean;
  frame?: string[];
  signal?: string;
  started?: number;
  ended?: number;
  code?: number | null;
  ran?: number | null;
  stdout?: string;
  text?: string;
  unplugged?: boolean;
}

/** The test's end of one life of `fixtures/fake-runtime.mjs`. */
export class FakeRuntime {
  /** PID in the pod's namespace; set once `started` has resolved. */
  pid = 0;
  argv: string[] = [];
  env: Record<string, string> = {};
  readonly started: Promise<void>;
  readonly gone: Promise<void>;
  private readonly messages: Message[] = [];
  private readonly waiting = new Set<() => void>();

  constructor(private readonly socket: Socket) {
    this.gone = new Promise((resolve) => socket.on("close", () => resolve()));
    socket.on("error", () => {});
    this.started = new Promise((resolve) => {
      createInterface({ input: socket }).on("line", (line) => {
        const message = JSON.parse(line) as Message;
        if (message.hello !== undefined) {
          this.pid = message.hello;
          this.argv = message.argv ?? [];
          this.env = message.env ?? {};
          resolve();
          return;
        }
        this.messages.push(message);
        for (const wake of [...this.waiting]) wake();
      });
    });
  }

  /** Asks for errands, see the fixture. */
  tell(errands: Record<string, unknown>): void {
    this.socket.write(`${JSON.stringify(errands)}\n`);
  }

  send(...frame: string[]): void {
    this.tell({ frame });
  }

  /** The next frame with that verb, in the order of arrival; others stay for later. */
  async frame(verb: string): Promise<string[]> {
    const message = await this.next(`frame ${verb}`, (m) => m.frame?.[0] === verb);
    return message.frame ?? [];
  }

  async signal(): Promise<string> {
    return (await this.next("signal", (m) => typeof m.signal === "string" && m.ended === undefined)).signal ?? "";
  }

  async unplugged(): Promise<void> {
    await this.next("end of the channel", (m) => m.unplugged === true);
  }

  /** Starts a program as the runtime's child; gives its PID. */
  async start(command: string, args: string[], detached = false): Promise<number> {
    this.tell({ start: { command, args, detached } });
    return (await this.next("start of a child", (m) => m.started !== undefined)).started ?? 0;
  }

  async ended(pid: number): Promise<number | null> {
    return (await this.next("end of a child", (m) => m.ended === pid)).code ?? null;
  }

  /** Runs a shell text inside of the pod. */
  async shell(text: string): Promise<string> {
    this.tell({ run: { command: "sh", args: ["-c", text] } });
    return (await this.next("end of a shell", (m) => m.ran !== undefined)).stdout ?? "";
  }

  async read(path: string): Promise<string> {
    this.tell({ read: path });
    return (await this.next("text of a FIFO", (m) => m.text !== undefined)).text ?? "";
  }

  /** Frames not asked for yet. */
  pending(verb: string): number {
    return this.messages.filter((m) => m.frame?.[0] === verb).length;
  }

  private next(what: string, wanted: (message: Message) => boolean, limitMs = 20_000): Promise<Message> {
    return new Promise((resolve, reject) => {
      const stop = () => {
        clearTimeout(timer);
        this.waiting.delete(look);
      };
      const timer = setTimeout(() => {
        stop();
        reject(new Error(`no ${what} within ${limitMs} ms; waiting: ${JSON.stringify(this.messages)}`));
      }, limitMs);
      const look = () => {
        const at = this.messages.findIndex(wanted);
        const [message] = at < 0 ? [] : this.messages.splice(at, 1);
        if (!message) return;
        stop();
        resolve(message);
      };
      this.waiting.add(look);
      look();
    });
  }
}
