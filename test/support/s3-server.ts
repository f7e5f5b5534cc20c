import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ensureSeaweed, renderIdentities, seaweedArguments, seaweedSockets } from "../../local/object-store/seaweed.ts";
import { choosePort } from "../../local/process/free-port.ts";
import type { S3Options } from "../../src/store/s3-options.ts";
import { ServerEndedError, startStoreServer, statusOf } from "./store-server.ts";

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

/** Attempts with other ports each: another test may take one between its choice and the server's start. */
const mostAttempts = 3;

/** Starts the server; installs it into the cache when it is not there. */
export async function startS3Server(): Promise<S3Server> {
  const program = await ensureSeaweed();
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await startOnFreePorts(program);
    } catch (error) {
      if (!(error instanceof ServerEndedError) || attempt === mostAttempts) throw error;
    }
  }
}

async function startOnFreePorts(program: string): Promise<S3Server> {
  const folder = await mkdtemp(join(tmpdir(), "s3-"));
  const [accessKey, secretKey] = ["test-access-key", "test-secret-key"];
  const identitiesFile = join(folder, "identities.json");
  await writeFile(identitiesFile, renderIdentities({ accessKey, secretKey }));
  const chosen = await Promise.all(Array.from({ length: 8 }, () => choosePort()));
  const [port = 0, s3Grpc = 0, master = 0, masterGrpc = 0, volume = 0, volumeGrpc = 0, filer = 0, filerGrpc = 0] =
    chosen;
  const ports = { s3: port, s3Grpc, master, masterGrpc, volume, volumeGrpc, filer, filerGrpc };
  const server = await startStoreServer({
    name: "S3",
    command: program,
    args: seaweedArguments({ folder, address: "127.0.0.1", identitiesFile, ports }),
    cwd: folder,
    // Without a key of its own it refuses what is to be encrypted.
    env: { ...process.env, WEED_S3_SSE_KEK: "5e".repeat(32) },
    leftovers: [folder, ...seaweedSockets(ports)],
    // The gateway answers 403 without credentials as soon as it can reach its own parts.
    isUp: async (output) => (await statusOf(port, "/")) === 403 && output.includes("Start Seaweed S3 API"),
  });
  const endpoint = `http://127.0.0.1:${port}`;
  return {
    endpoint,
    port,
    accessKey,
    secretKey,
    pid: server.pid,
    options: (bucket) => ({
      bucket,
      endpoint,
      region: "us-east-1",
      credentials: { accessKeyId: accessKey, secretAccessKey: secretKey },
    }),
    output: server.output,
    stop: server.stop,
  };
}
