import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { parse } from "yaml";
import type { KubeConnection } from "./connection.ts";

interface KubeconfigFile {
  "current-context"?: string;
  contexts?: { name: string; context?: { cluster?: string; user?: string; namespace?: string } }[];
  clusters?: { name: string; cluster?: ClusterEntry }[];
  users?: { name: string; user?: UserEntry }[];
}

interface ClusterEntry {
  server?: string;
  "certificate-authority"?: string;
  "certificate-authority-data"?: string;
  "insecure-skip-tls-verify"?: boolean;
  "tls-server-name"?: string;
}

interface UserEntry {
  token?: string;
  tokenFile?: string;
  "client-certificate"?: string;
  "client-certificate-data"?: string;
  "client-key"?: string;
  "client-key-data"?: string;
  exec?: unknown;
  "auth-provider"?: unknown;
}

/** Reads a kubeconfig file; client certificates and tokens are supported, login programs are not. */
export function loadKubeconfigConnection(path: string, context?: string): KubeConnection {
  return parseKubeconfig(readFileSync(path, "utf8"), {
    origin: path,
    context,
    readFile: (name) => readFileSync(resolve(dirname(path), name), "utf8"),
  });
}

export interface ParseKubeconfigOptions {
  /** Name of the file for messages. */
  origin: string;
  context?: string | undefined;
  /** Reads a file that the kubeconfig points to. */
  readFile(name: string): string;
}

/** The connection that a kubeconfig text describes. */
export function parseKubeconfig(text: string, options: ParseKubeconfigOptions): KubeConnection {
  const { origin, readFile } = options;
  const file = (parse(text) ?? {}) as KubeconfigFile;
  const contextName = options.context ?? file["current-context"];
  if (!contextName) throw new Error(`${origin} has no current-context: name a context`);
  const context = find(file.contexts, contextName, "context", origin).context ?? {};
  const cluster = find(file.clusters, context.cluster, "cluster", origin).cluster ?? {};
  const user: UserEntry = context.user ? (find(file.users, context.user, "user", origin).user ?? {}) : {};
  if (!cluster.server) throw new Error(`${origin}: cluster ${context.cluster} has no server`);
  if (user.exec || user["auth-provider"]) {
    throw new Error(
      `${origin}: user ${context.user} logs in by a program, which is not supported; use a token or certificate`,
    );
  }
  const ca = material(cluster["certificate-authority-data"], cluster["certificate-authority"], readFile);
  const clientCert = material(user["client-certificate-data"], user["client-certificate"], readFile);
  const clientKey = material(user["client-key-data"], user["client-key"], readFile);
  const { tokenFile, token } = user;
  return {
    server: cluster.server.replace(/\/+$/, ""),
    ...(ca === undefined ? {} : { ca }),
    ...(clientCert === undefined ? {} : { clientCert }),
    ...(clientKey === undefined ? {} : { clientKey }),
    ...(cluster["tls-server-name"] ? { serverName: cluster["tls-server-name"] } : {}),
    ...(cluster["insecure-skip-tls-verify"] ? { insecureSkipTlsVerify: true } : {}),
    ...(tokenFile ? { token: () => readFile(tokenFile).trim() } : token ? { token: () => token } : {}),
    ...(context.namespace ? { namespace: context.namespace } : {}),
  };
}

function find<T extends { name: string }>(
  list: T[] | undefined,
  name: string | undefined,
  what: string,
  origin: string,
): T {
  const found = list?.find((entry) => entry.name === name);
  if (!found) throw new Error(`${origin} has no ${what} named ${name}`);
  return found;
}

function material(data: string | undefined, path: string | undefined, readFile: (name: string) => string) {
  if (data) return Buffer.from(data, "base64").toString("utf8");
  return path ? readFile(path) : undefined;
}
