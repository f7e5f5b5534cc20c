import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { network } from "../cluster/addresses.ts";
import { pathKey } from "../cluster/folders.ts";
import { type S3Credentials, type SeaweedPorts, seaweedSockets } from "./seaweed.ts";

/** Where the local S3 server is reached from pods and Services. */
export const insideEndpoint = `http://${network.controlPlane}:${network.s3Port}`;

/** Bucket that the local set-up makes. */
export const bucket = "backups";

/**
 * Ports of the server inside the cluster's own network. All but the one for S3 differ between clones: the server names
 * sockets in the machine's /tmp by them.
 */
export function insidePorts(stateRoot: string): SeaweedPorts {
  const first = 20_000 + (Number.parseInt(pathKey(stateRoot).slice(0, 6), 16) % 5_000) * 8;
  const [s3Grpc, master, masterGrpc, volume, volumeGrpc, filer, filerGrpc] = Array.from(
    { length: 7 },
    (_, at) => first + at,
  );
  return { s3: network.s3Port, s3Grpc, master, masterGrpc, volume, volumeGrpc, filer, filerGrpc } as SeaweedPorts;
}

/** Removes what the ended server left outside of its folder. */
export function removeSockets(stateRoot: string): void {
  for (const path of seaweedSockets(insidePorts(stateRoot))) rmSync(path, { force: true });
}

/** The S3 server's user of this cluster, made with its folder. */
export function ensureS3Credentials(folder: string): S3Credentials {
  const file = join(folder, "credentials.json");
  if (!existsSync(file)) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const made: S3Credentials = {
      accessKey: randomBytes(10).toString("hex"),
      secretKey: randomBytes(20).toString("hex"),
    };
    writeFileSync(file, JSON.stringify(made), { mode: 0o600 });
  }
  return JSON.parse(readFileSync(file, "utf8")) as S3Credentials;
}
