import { clusterName, clusterNamespace } from "../api/cluster-facts.ts";
import { paths, ports } from "../api/constants.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { EnvFromSource, EnvVar } from "../api/generated/kubernetes.ts";
import type { BuildContext } from "./context.ts";

/** Environment of the postgres container and of job containers; the user's entries come after ours. */
export function buildEnvironment(cluster: Cluster, podName: string, context: BuildContext): EnvVar[] {
  const env: EnvVar[] = [
    { name: "PGDATA", value: paths.pgData },
    { name: "POD_NAME", value: podName },
    { name: "NAMESPACE", value: clusterNamespace(cluster) },
    { name: "CLUSTER_NAME", value: clusterName(cluster) },
    { name: "PSQL_HISTORY", value: `${paths.tmp}/.psql_history` },
    { name: "PGPORT", value: String(ports.postgres) },
    { name: "PGHOST", value: paths.socketDir },
    { name: "TMPDIR", value: paths.tmp },
    ...(cluster.spec.env ?? []),
  ];
  if (context.standbyTcpUserTimeout !== undefined)
    env.push({ name: "CNPG_STANDBY_TCP_USER_TIMEOUT", value: context.standbyTcpUserTimeout });
  return env;
}

/** A short text that changes with the environment; a fallback for pods whose recorded spec cannot be read. */
export function hashEnvironment(env: readonly EnvVar[], envFrom: readonly EnvFromSource[]): string {
  const text = JSON.stringify([env, envFrom]);
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  // The alphabet of generated Kubernetes names: no vowels, no digits that look like letters.
  const alphabet = "bcdfghjklmnpqrstvwxz2456789";
  return [...String(hash)].map((digit) => alphabet[digit.charCodeAt(0) % alphabet.length]).join("");
}

/** Log flags that end every command line of ours in a pod. */
export function logFlags(cluster: Cluster, context: BuildContext): string[] {
  const flags = [`--log-level=${cluster.spec.logLevel || "info"}`];
  if (context.logFieldLevel) flags.push(`--log-field-level=${context.logFieldLevel}`);
  if (context.logFieldTimestamp) flags.push(`--log-field-timestamp=${context.logFieldTimestamp}`);
  return flags;
}
