import { spawn } from "node:child_process";
import { rm } from "node:fs/promises";
import { request } from "node:http";
import { request as secureRequest } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";

/** An object store's server that runs for a test. */
export interface StoreServerProcess {
  readonly pid: number;
  /** The end of what the server wrote. */
  output(): string;
  /** Ends it and removes its files. */
  stop(): Promise<void>;
}

export interface StoreServerOptions {
  /** For messages: `S3`, for example. */
  name: string;
  command: string;
  args: readonly string[];
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  /** Files and folders to remove in the end. */
  leftovers: readonly string[];
  /** Whether it serves by now, from what it wrote or by asking it. */
  isUp: (output: string) => Promise<boolean>;
}

/** A server ended by itself before it was up. */
export class ServerEndedError extends Error {
  override readonly name = "ServerEndedError";
}

/** Starts a server and waits until it serves; one that does not is ended and its output told. */
export async function startStoreServer(options: StoreServerOptions): Promise<StoreServerProcess> {
  const { name, command, args, cwd, env, leftovers, isUp } = options;
  const child = spawn(command, args, {
    stdio: ["ignore", "pipe", "pipe"],
    ...(cwd === undefined ? {} : { cwd }),
    ...(env === undefined ? {} : { env }),
  });
  let output = "";
  const keep = (chunk: Buffer) => {
    output = (output + chunk.toString("utf8")).slice(-20_000);
  };
  child.stdout.on("data", keep);
  child.stderr.on("data", keep);
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      // It has nothing that is worth an orderly end, which takes SeaweedFS ten seconds.
      child.kill("SIGKILL");
      await ended;
    }
    for (const path of leftovers) await rm(path, { recursive: true, force: true });
  };
  try {
    const end = Date.now() + 60_000;
    while (!(await isUp(output))) {
      if (child.exitCode !== null) {
        throw new ServerEndedError(`the ${name} server ended with ${child.exitCode}:\n${output}`);
      }
      if (Date.now() > end) throw new Error(`the ${name} server does not answer:\n${output}`);
      await sleep(100);
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { pid: child.pid ?? 0, output: () => output, stop };
}

/** Status of an answer from a loopback port; `undefined` when there is none. */
export function statusOf(port: number, path: string, secure = false): Promise<number | undefined> {
  return new Promise((resolve) => {
    const options = { host: "127.0.0.1", port, path, timeout: 1000, rejectUnauthorized: false };
    const probe = (secure ? secureRequest : request)(options, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    probe.on("error", () => resolve(undefined));
    probe.on("timeout", () => probe.destroy());
    probe.end();
  });
}
