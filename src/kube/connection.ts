import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../ports/clock.ts";

/** Where the API server is and how to prove who we are. */
export interface KubeConnection {
  /** For example `https://10.96.0.1:443`. */
  server: string;
  /** PEM bundle; the system's authorities when absent. */
  ca?: string;
  /** Name that the server's certificate must carry when it is not the host of `server`. */
  serverName?: string;
  insecureSkipTlsVerify?: boolean;
  clientCert?: string;
  clientKey?: string;
  /** The bearer token of now; `fresh` after the server refused the last one. */
  token?: (options?: { fresh?: boolean }) => string | undefined;
  /** Namespace to use when none is named. */
  namespace?: string;
}

const serviceAccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount";
/** The kubelet renews the token file long before the old token ends, so a short memory is harmless. */
const tokenMemoryMs = 30_000;

export interface InClusterOptions {
  clock: Clock;
  /** @default the process environment */
  env?: Readonly<Record<string, string | undefined>>;
  /** @default the folder where Kubernetes mounts the service account */
  folder?: string;
}

/** The connection of a pod by its service account; throws when this process does not run in a pod. */
export function loadInClusterConnection(options: InClusterOptions): KubeConnection {
  const env = options.env ?? process.env;
  const folder = options.folder ?? serviceAccountFolder;
  const host = env["KUBERNETES_SERVICE_HOST"];
  const port = env["KUBERNETES_SERVICE_PORT_HTTPS"] ?? env["KUBERNETES_SERVICE_PORT"] ?? "443";
  if (!host) throw new Error("KUBERNETES_SERVICE_HOST is not set: this is no pod; name a kubeconfig file instead");
  const namespace = readText(join(folder, "namespace"));
  return {
    // By address, never by name: the operand image's resolver must not be needed.
    server: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
    ca: readFileSync(join(folder, "ca.crt"), "utf8"),
    token: rereadToken(join(folder, "token"), options.clock),
    ...(namespace ? { namespace } : {}),
  };
}

function rereadToken(path: string, clock: Clock): NonNullable<KubeConnection["token"]> {
  let known: { value: string; readAt: number } | undefined;
  return (options) => {
    const now = clock.monotonicMs();
    if (known && !options?.fresh && now - known.readAt < tokenMemoryMs) return known.value;
    const value = readText(path);
    // Between two atomic swaps of the projected volume the file can be missing for a moment.
    if (value) known = { value, readAt: now };
    return known?.value;
  };
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return undefined;
  }
}
