import { openSync, write, writeSync } from "node:fs";

/** Where log lines go. */
export interface LogDestination {
  /** Takes one line without its newline; never throws and never blocks. */
  write(line: string): void;
  /** Writes what is waiting, synchronously; for the end of the program. */
  flush(): void;
}

/** Lines waiting beyond this many characters are dropped and counted: a stuck collector must not stop lease renewals. */
const maxPendingChars = 8 * 1024 * 1024;

/** Writes to a file descriptor in the background, one write in flight, in order. */
export function createDescriptorDestination(fd: number, maxChars = maxPendingChars): LogDestination {
  return new DescriptorDestination(fd, maxChars);
}

/** Appends to a file (or FIFO) that is created when missing; `stderr` when no path is given. */
export function openLogDestination(path?: string): LogDestination {
  return createDescriptorDestination(path ? openSync(path, "a", 0o600) : 2);
}

class DescriptorDestination implements LogDestination {
  readonly #fd: number;
  readonly #maxChars: number;
  #lines: string[] = [];
  #chars = 0;
  #dropped = 0;
  #busy = false;
  /** Bytes of the write in flight that are not known to be written. */
  #inFlight: Buffer | undefined;

  constructor(fd: number, maxChars: number) {
    this.#fd = fd;
    this.#maxChars = maxChars;
    process.once("exit", () => this.flush());
  }

  write(line: string): void {
    if (this.#chars + line.length > this.#maxChars) {
      this.#dropped++;
      return;
    }
    this.#lines.push(line);
    this.#chars += line.length;
    if (this.#busy) return;
    this.#busy = true;
    // One write for all lines of this turn of the event loop.
    setImmediate(() => this.#drain());
  }

  flush(): void {
    // A write in flight may finish on its own thread too; a repeated part of a line is better than a lost one.
    const rest = Buffer.concat([this.#inFlight ?? Buffer.alloc(0), this.#takePending()]);
    this.#inFlight = undefined;
    let offset = 0;
    for (let refusals = 0; offset < rest.length && refusals < 1000; ) {
      try {
        offset += writeSync(this.#fd, rest, offset);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EAGAIN") return;
        refusals++;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
      }
    }
  }

  #takePending(): Buffer {
    const lines = this.#lines;
    this.#lines = [];
    this.#chars = 0;
    if (this.#dropped > 0) {
      lines.push(JSON.stringify({ level: "warning", msg: "Log lines were dropped", dropped: this.#dropped }));
      this.#dropped = 0;
    }
    return Buffer.from(lines.map((line) => `${line}\n`).join(""));
  }

  #drain(): void {
    if (this.#lines.length === 0) {
      this.#busy = false;
      return;
    }
    this.#writeOut(this.#takePending());
  }

  #writeOut(bytes: Buffer): void {
    this.#inFlight = bytes;
    write(this.#fd, bytes, 0, bytes.length, null, (error, written) => {
      this.#inFlight = undefined;
      if (error?.code === "EAGAIN") {
        this.#inFlight = bytes;
        setTimeout(() => this.#writeOut(bytes), 10);
        return;
      }
      // Nowhere is left to report a broken log to; later lines may get through again.
      if (!error && written < bytes.length) this.#writeOut(bytes.subarray(written));
      else this.#drain();
    });
  }
}
