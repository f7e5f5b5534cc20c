import { type ChildProcess, spawn } from "node:child_process";
import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { choosePort } from "../../local/process/free-port.ts";
import { ensureTools, toolPath } from "../../local/tools/build.ts";
import type { GcsOptions } from "../../src/store/gcs/gcs-options.ts";

/** A server of Google's storage protocol (fake-gcs-server) of its own on a loopback port; all is in its memory. */
export interface GcsServer {
  readonly port: number;
  readonly endpoint: string;
  /** What a client needs for one bucket; the server asks for no credentials. */
  options(bucket: string): GcsOptions;
  /** The end of what the server wrote. */
  output(): string;
  stop(): Promise<void>;
}

/** Starts the server; builds it into the cache when it is not there. */
export async function startGcsServer(): Promise<GcsServer> {
  await ensureTools(["fake-gcs-server"]);
  const port = await choosePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const flags = ["-scheme", "http", "-host", "127.0.0.1", "-port", String(port), "-backend", "memory"];
  const child = spawn(
    toolPath("fake-gcs-server"),
    [...flags, "-external-url", endpoint, "-public-host", `127.0.0.1:${port}`, "-log-level", "warn"],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  let output = "";
  const keep = (chunk: Buffer) => {
    output = (output + chunk.toString("utf8")).slice(-20_000);
  };
  child.stdout.on("data", keep);
  child.stderr.on("data", keep);
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  };
  try {
    await untilAnswering(child, port, () => output);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    port,
    endpoint,
    options: (bucket) => ({ bucket, endpoint, project: async () => "test" }),
    output: () => output,
    stop,
  };
}

async function untilAnswering(child: ChildProcess, port: number, output: () => string): Promise<void> {
  const end = Date.now() + 60_000;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the GCS server ended with ${child.exitCode}:\n${output()}`);
    if (await answers(port)) return;
    if (Date.now() > end) throw new Error(`the GCS server does not answer:\n${output()}`);
    await sleep(100);
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = request({ host: "127.0.0.1", port, path: "/storage/v1/b", timeout: 1000 }, (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200);
    });
    probe.on("error", () => resolve(false));
    probe.on("timeout", () => probe.destroy());
    probe.end();
  });
}
