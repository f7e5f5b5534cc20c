import { secretNames } from "../api/cluster-facts.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { InstanceContext } from "./instance-context.ts";
import { type SecretReader, secretText } from "./secret-reader.ts";

/** One file that comes from a key of a Secret. */
interface CertificateFile {
  file: string;
  secret: string;
  key: string;
}

/** The certificate files of an instance and where they come from. */
export function certificateFiles(cluster: Cluster): CertificateFile[] {
  const names = secretNames(cluster);
  return [
    { file: "server.crt", secret: names.serverTls, key: "tls.crt" },
    { file: "server.key", secret: names.serverTls, key: "tls.key" },
    { file: "streaming_replica.crt", secret: names.replicationTls, key: "tls.crt" },
    { file: "streaming_replica.key", secret: names.replicationTls, key: "tls.key" },
    { file: "client-ca.crt", secret: names.clientCa, key: "ca.crt" },
    { file: "server-ca.crt", secret: names.serverCa, key: "ca.crt" },
  ];
}

export interface CertificateResult {
  changed: boolean;
  /** Files that could not be brought up to date, with the reason. */
  problems: { file: string; secret: string; reason: string }[];
}

async function refreshFile(context: InstanceContext, wanted: CertificateFile, content: string): Promise<boolean> {
  const path = `${context.paths.certificates}/${wanted.file}`;
  const changed = await context.files.writeAtomic(path, content, 0o600);
  if (changed) context.logger.info("Refreshed configuration file", { filename: path, secret: wanted.secret });
  return changed;
}

/** Brings the certificate files up to date. A Secret that can't be read leaves the files as they are. */
export async function refreshCertificates(
  context: InstanceContext,
  cluster: Cluster,
  secrets: SecretReader,
  signal?: AbortSignal,
): Promise<CertificateResult> {
  await context.files.makeDirectory(context.paths.certificates, 0o700);
  const result: CertificateResult = { changed: false, problems: [] };
  const contents = new Map<string, string>();
  for (const wanted of certificateFiles(cluster)) {
    const read = await secrets.read(wanted.secret, signal);
    const content = read.kind === "found" ? secretText(read.secret, wanted.key) : undefined;
    if (content === undefined) {
      const reason = read.kind === "found" ? `has no key ${wanted.key}` : read.kind;
      result.problems.push({ file: wanted.file, secret: wanted.secret, reason });
      continue;
    }
    contents.set(wanted.file, content);
    if (await refreshFile(context, wanted, content)) result.changed = true;
  }
  const cert = contents.get("server.crt");
  const key = contents.get("server.key");
  if (cert !== undefined && key !== undefined) context.state.serverCertificate = { cert, key };
  return result;
}

/** Takes the server certificate from its Secret without writing files; what can't be read leaves the one in use. */
export async function preloadServerCertificate(
  context: InstanceContext,
  cluster: Cluster,
  secrets: SecretReader,
  signal?: AbortSignal,
): Promise<void> {
  const read = await secrets.read(secretNames(cluster).serverTls, signal);
  if (read.kind !== "found") return;
  const cert = secretText(read.secret, "tls.crt");
  const key = secretText(read.secret, "tls.key");
  if (cert !== undefined && key !== undefined) context.state.serverCertificate = { cert, key };
}

/** Takes the server certificate from disk, so that a restarted manager can answer probes before the API server did. */
export async function loadServerCertificate(context: InstanceContext): Promise<void> {
  const cert = await context.files.read(`${context.paths.certificates}/server.crt`);
  const key = await context.files.read(`${context.paths.certificates}/server.key`);
  if (cert && key) context.state.serverCertificate ??= { cert, key };
}

/** Files that PostgreSQL does not start without. */
export async function missingCertificates(context: InstanceContext): Promise<string[]> {
  const missing: string[] = [];
  for (const file of ["server.crt", "server.key", "client-ca.crt"]) {
    if (!(await context.files.exists(`${context.paths.certificates}/${file}`))) missing.push(file);
  }
  return missing;
}
