import { execFile } from "node:child_process";
import { closeSync, constants, openSync, readSync } from "node:fs";
import { stat } from "node:fs/promises";
import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createDeferred } from "./deferred.ts";

/** Longest time that the end of reading waits for the lines still in a pipe. */
const drainLimitMs = 2_000;

/** A named pipe that is being read. */
export interface FifoReader {
  /** Reads what is in the pipe right now, then closes it. */
  close(): Promise<void>;
  /** Settles when reading ended, with the error if it was not asked for. */
  readonly closed: Promise<Error | undefined>;
}

/** Makes sure that a path is a named pipe; a missing one is made (the launcher makes them in a pod). */
export async function ensureFifo(path: string): Promise<void> {
  const existing = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (existing?.isFIFO()) return;
  if (existing) throw new Error(`log pipe ${path} is not a named pipe; remove it and start the pod again`);
  await new Promise<void>((resolve, reject) => {
    execFile("mkfifo", ["-m", "600", path], (error) => (error ? reject(error) : resolve()));
  });
}

/**
 * Reads a named pipe without a thread and without an end of file: it is opened for reading and writing, so opening never
 * waits for a writer and the pipe never looks closed, and the event loop polls it like a socket.
 */
export function openFifo(path: string, onData: (chunk: Buffer) => Promise<void> | undefined): FifoReader {
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  let socket: Socket;
  try {
    socket = new Socket({ fd, readable: true, writable: false });
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  const closed = createDeferred<Error | undefined>();
  let failure: Error | undefined;
  let busy: Promise<void> | undefined;
  socket.on("data", (chunk) => {
    const wait = onData(chunk);
    if (!wait) return;
    socket.pause();
    busy = wait.finally(() => {
      busy = undefined;
      socket.resume();
    });
  });
  socket.on("error", (error) => {
    failure = error;
  });
  socket.on("close", () => closed.resolve(failure));
  const drain = async (): Promise<void> => {
    await busy;
    socket.pause();
    for (let chunk = socket.read() as Buffer | null; chunk !== null; chunk = socket.read()) await onData(chunk);
    while (!socket.destroyed) {
      const chunk = readNow(fd);
      if (!chunk) return;
      await onData(chunk);
    }
  };
  const close = async (): Promise<void> => {
    // Whoever takes the lines may be stuck; the end must not wait for it.
    if (!socket.destroyed) await Promise.race([drain(), sleep(drainLimitMs, undefined, { ref: false })]);
    socket.destroy();
    await closed.promise;
  };
  return { close, closed: closed.promise };
}

/** The bytes a pipe holds, at most one block; `undefined` when it is empty. */
function readNow(fd: number): Buffer | undefined {
  const block = Buffer.alloc(65_536);
  try {
    const length = readSync(fd, block, 0, block.length, null);
    return length > 0 ? block.subarray(0, length) : undefined;
  } catch {
    return undefined;
  }
}
