import { write, writeSync } from "node:fs";
import type { LogDestination } from "../../runtime/log-destination.ts";
import { createDeferred, type Deferred } from "./deferred.ts";

/** A log destination that tells when it has room, so that a flood waits in PostgreSQL's pipe and not in our memory. */
export interface LineWriter extends LogDestination {
  /** Takes a line; the promise, if any, resolves when more may come. Waiting is asked for, not enforced. */
  write(line: string): Promise<void> | undefined;
}

/** From here on `write` asks its caller to wait, in bytes. */
const highWaterBytes = 256 * 1024;
/** Lines of callers that do not wait are dropped and counted beyond this. */
const maxBytes = 8 * 1024 * 1024;

/** Writes lines to a descriptor in the background, one write in flight, in order. The one writer of its descriptor. */
export function createLineWriter(fd: number): LineWriter {
  return new DescriptorWriter(fd);
}

class DescriptorWriter implements LineWriter {
  readonly #fd: number;
  #lines: string[] = [];
  #bytes = 0;
  #dropped = 0;
  #inFlight: Buffer | undefined;
  #busy = false;
  #room: Deferred<void> | undefined;

  constructor(fd: number) {
    this.#fd = fd;
    process.once("exit", () => this.flush());
  }

  write(line: string): Promise<void> | undefined {
    if (this.#bytes + line.length > maxBytes) {
      this.#dropped += 1;
      return this.#waiting();
    }
    this.#lines.push(line);
    this.#bytes += line.length + 1;
    if (!this.#busy) {
      this.#busy = true;
      setImmediate(() => this.#drain());
    }
    return this.#bytes > highWaterBytes ? this.#waiting() : undefined;
  }

  flush(): void {
    // What is in flight may arrive twice; a repeated line is better than a lost one.
    const rest = Buffer.concat([this.#inFlight ?? Buffer.alloc(0), this.#takePending()]);
    this.#inFlight = undefined;
    for (let offset = 0, refusals = 0; offset < rest.length && refusals < 1000; ) {
      try {
        offset += writeSync(this.#fd, rest, offset);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EAGAIN") return;
        refusals += 1;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
      }
    }
  }

  #waiting(): Promise<void> {
    this.#room ??= createDeferred<void>();
    return this.#room.promise;
  }

  #takePending(): Buffer {
    const lines = this.#lines;
    if (this.#dropped > 0) {
      lines.push(JSON.stringify({ level: "warning", msg: "Log lines were dropped", dropped: this.#dropped }));
      this.#dropped = 0;
    }
    this.#lines = [];
    this.#bytes = 0;
    return Buffer.from(lines.length === 0 ? "" : `${lines.join("\n")}\n`);
  }

  #drain(): void {
    const bytes = this.#takePending();
    if (bytes.length > 0) {
      this.#writeOut(bytes);
      return;
    }
    this.#busy = false;
    this.#room?.resolve();
    this.#room = undefined;
  }

  #writeOut(bytes: Buffer): void {
    this.#inFlight = bytes;
    write(this.#fd, bytes, 0, bytes.length, null, (error, written) => {
      if (error?.code === "EAGAIN") {
        setTimeout(() => this.#writeOut(bytes), 10);
        return;
      }
      this.#inFlight = undefined;
      // A broken log has nowhere to be reported; later lines may get through again.
      if (!error && written < bytes.length) this.#writeOut(bytes.subarray(written));
      else this.#drain();
    });
  }
}
