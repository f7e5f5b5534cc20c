import { constants, fstatSync, openSync, write, writeSync } from "node:fs";
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

export interface LineWriterLimits {
  /** Time without progress after which lines are dropped and nobody is asked to wait, in milliseconds. @default 5000 */
  stallMs?: number;
  /** Longest time that `flush` may take, in milliseconds. @default 3000 */
  flushMs?: number;
}

/** Pause before a full pipe is tried again. */
const retryMs = 2;

/** Writes lines to a descriptor in the background, one write in flight, in order. The one writer of its descriptor. */
export function createLineWriter(fd: number, limits: LineWriterLimits = {}): LineWriter {
  return new DescriptorWriter(withoutBlocking(fd), limits.stallMs ?? 5_000, limits.flushMs ?? 3_000);
}

/**
 * A descriptor of our own for a pipe whose reader may hang: a write that blocks holds one of the few threads that all file
 * operations share. The given one stays as it is, since others have it too.
 */
function withoutBlocking(fd: number): number {
  try {
    if (!fstatSync(fd).isFIFO()) return fd;
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    // The pipe may belong to another user; then writes block, and the limits below still hold.
    return fd;
  }
}

class DescriptorWriter implements LineWriter {
  readonly #fd: number;
  readonly #stallMs: number;
  readonly #flushMs: number;
  #lines: string[] = [];
  #bytes = 0;
  #dropped = 0;
  #inFlight: Buffer | undefined;
  #busy = false;
  #room: Deferred<void> | undefined;
  #progressAt = performance.now();
  #stalled = false;

  constructor(fd: number, stallMs: number, flushMs: number) {
    this.#fd = fd;
    this.#stallMs = stallMs;
    this.#flushMs = flushMs;
    process.once("exit", () => this.flush());
  }

  write(line: string): Promise<void> | undefined {
    if (this.#bytes + line.length > (this.#stalled ? highWaterBytes : maxBytes)) {
      this.#dropped += 1;
      return this.#stalled ? undefined : this.#waiting();
    }
    this.#lines.push(line);
    this.#bytes += line.length + 1;
    if (!this.#busy) {
      this.#busy = true;
      this.#progressAt = performance.now();
      setImmediate(() => this.#drain());
    }
    return this.#bytes > highWaterBytes && !this.#stalled ? this.#waiting() : undefined;
  }

  flush(): void {
    // What is in flight may arrive twice; a repeated line is better than a lost one.
    const rest = Buffer.concat([this.#inFlight ?? Buffer.alloc(0), this.#takePending()]);
    this.#inFlight = undefined;
    // A stalled pipe gets one more try: its reader had its time.
    const end = performance.now() + (this.#stalled ? 0 : this.#flushMs);
    for (let offset = 0; offset < rest.length; ) {
      try {
        offset += writeSync(this.#fd, rest, offset);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EAGAIN" || performance.now() >= end) return;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, retryMs);
      }
    }
  }

  #waiting(): Promise<void> {
    if (!this.#room) {
      this.#room = createDeferred<void>();
      this.#watchProgress();
    }
    return this.#room.promise;
  }

  /** Lets the waiting go when nothing gets through: PostgreSQL must not stop because nobody takes its log. */
  #watchProgress(): void {
    const left = this.#progressAt + this.#stallMs - performance.now();
    if (left <= 0) {
      this.#stalled = true;
      this.#release();
      return;
    }
    setTimeout(() => this.#room && this.#watchProgress(), left).unref();
  }

  #release(): void {
    this.#room?.resolve();
    this.#room = undefined;
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
    this.#release();
  }

  #writeOut(bytes: Buffer): void {
    this.#inFlight = bytes;
    write(this.#fd, bytes, 0, bytes.length, null, (error, written) => {
      if (error?.code === "EAGAIN") {
        setTimeout(() => this.#retry(bytes), retryMs);
        return;
      }
      this.#inFlight = undefined;
      this.#progressAt = performance.now();
      this.#stalled = false;
      // A broken log has nowhere to be reported; later lines may get through again.
      if (!error && written < bytes.length) this.#writeOut(bytes.subarray(written));
      else this.#drain();
    });
  }

  #retry(bytes: Buffer): void {
    // A flush may have written it meanwhile.
    if (this.#inFlight === bytes) this.#writeOut(bytes);
    else this.#drain();
  }
}
