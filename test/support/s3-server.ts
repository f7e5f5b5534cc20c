import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ensureSeaweed, renderIdentities, seaweedArguments, seaweedSockets } from "../../local/object-store/seaweed.ts";
import { choosePort } from "../../local/process/free-port.ts";
import type { S3Options } from "../../src/store/s3-options.ts";

/** A real S3 server (SeaweedFS) of its own on a loopback port. */
export interface S3Server {
  readonly endpoint: string;
  readonly port: number;
  readonly accessKey: string;
  readonly secretKey: string;
  readonly pid: number;
  /** What a client needs for one bucket. */
  options(bucket: string): S3Options;
  /** The end of what the server wrote. */
  output(): string;
  /** Ends it and removes its files. */
  stop(): Promise<void>;
}

/** Starts the server; installs it into the cache when it is not there. */
export async function startS3Server(): Promise<S3Server> {
  const program = await ensureSeaweed();
  const folder = await mkdtemp(join(tmpdir(), "s3-"));
  const [accessKey, secretKey] = ["test-access-key", "test-secret-key"];
  const identitiesFile = join(folder, "identities.json");
  await writeFile(identitiesFile, renderIdentities({ accessKey, secretKey }));
  const chosen = await Promise.all(Array.from({ length: 8 }, () => choosePort()));
  const [port = 0, s3Grpc = 0, master = 0, masterGrpc = 0, volume = 0, volumeGrpc = 0, filer = 0, filerGrpc = 0] =
    chosen;
  const ports = { s3: port, s3Grpc, master, masterGrpc, volume, volumeGrpc, filer, filerGrpc };
  const child = spawn(program, seaweedArguments({ folder, address: "127.0.0.1", identitiesFile, ports }), {
    stdio: ["ignore", "pipe", "pipe"],
    cwd: folder,
    // Without a key of its own it refuses what is to be encrypted.
    env: { ...process.env, WEED_S3_SSE_KEK: "5e".repeat(32) },
  });
  let output = "";
  const keep = (chunk: Buffer) => {
    output = (output + chunk.toString("utf8")).slice(-20_000);
  };
  child.stdout.on("data", keep);
  child.stderr.on("data", keep);
  const endpoint = `http://127.0.0.1:${port}`;
  const stop = () => end(child, [folder, ...seaweedSockets(ports)]);
  try {
    await untilAnswering(child, port, () => output);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    endpoint,
    port,
    accessKey,
    secretKey,
    pid: child.pid ?? 0,
    options: (bucket) => ({
      bucket,
      endpoint,
      region: "us-east-1",
      credentials: { accessKeyId: accessKey, secretAccessKey: secretKey },
    }),
    output: () => output,
    stop,
  };
}

async function untilAnswering(child: ChildProcess, port: number, output: () => string): Promise<void> {
  const end = Date.now() + 60_000;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the S3 server ended with ${child.exitCode}:\n${output()}`);
    // The gateway answers 403 without credentials as soon as it can reach its own parts.
    if ((await statusOf(port)) === 403 && output().includes("Start Seaweed S3 API")) return;
    if (Date.now() > end) throw new Error(`the S3 server does not answer:\n${output()}`);
    await sleep(100);
  }
}

function statusOf(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const probe = request({ host: "127.0.0.1", port, path: "/", timeout: 1000 }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    probe.on("error", () => resolve(undefined));
    probe.on("timeout", () => probe.destroy());
    probe.end();
  });
}

async function end(child: ChildProcess, leftovers: readonly string[]): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    const ended = new Promise((resolve) => child.once("exit", resolve));
    // It has nothing that is worth an orderly end, which takes it ten seconds.
    child.kill("SIGKILL");
    await ended;
  }
  for (const path of leftovers) await rm(path, { recursive: true, force: true });
}
