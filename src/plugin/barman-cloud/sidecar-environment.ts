import { cnpgGroup, cnpgVersion } from "../../api/constants.ts";
import type { Backup } from "../../api/generated/backup.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import type { ResourceType } from "../../ports/kube-api.ts";

/** What the container's environment says. */
export interface SidecarEnvironment {
  namespace: string;
  /** Empty in a job of a release that did not say it. */
  clusterName: string;
  podName: string;
  spoolFolder: string;
  /** Data folder of PostgreSQL; empty when unknown. */
  pgData: string;
  /** Folder of PostgreSQL's socket. */
  socketHost: string;
  port: number;
  clusters: ResourceType<Cluster>;
  backups: ResourceType<Backup>;
}

/** Reads the environment of a sidecar; throws naming every variable that is missing. */
export function parseSidecarEnvironment(
  mode: "instance" | "restore",
  env: Readonly<Record<string, string | undefined>>,
): SidecarEnvironment {
  const needed = ["NAMESPACE", ...(mode === "instance" ? ["CLUSTER_NAME"] : []), "POD_NAME", "SPOOL_DIRECTORY"];
  const missing = needed.filter((name) => !env[name]);
  if (missing.length > 0) throw new Error(`${mode} needs ${missing.join(", ")} in its environment`);
  const group = env["CUSTOM_CNPG_GROUP"] || cnpgGroup;
  const version = env["CUSTOM_CNPG_VERSION"] || cnpgVersion;
  return {
    namespace: env["NAMESPACE"] ?? "",
    clusterName: env["CLUSTER_NAME"] ?? "",
    podName: env["POD_NAME"] ?? "",
    spoolFolder: env["SPOOL_DIRECTORY"] ?? "",
    pgData: env["PGDATA"] ?? "",
    socketHost: env["PGHOST"] || "/controller/run",
    port: Number(env["PGPORT"] || 5432),
    clusters: { group, version, kind: "Cluster", plural: "clusters", namespaced: true },
    backups: { group, version, kind: "Backup", plural: "backups", namespaced: true },
  };
}
