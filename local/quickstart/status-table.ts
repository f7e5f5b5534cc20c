import { labels } from "../../src/api/labels.ts";
import type { Kubectl } from "../cluster/kubectl.ts";
import { renderTable } from "../terminal/table.ts";
import { type ClusterView, isReady, type PodView } from "./wait-healthy.ts";

/** What the primary says about one of its standbys. */
export interface Replication {
  state: string;
  /** Bytes written on the primary that the standby has not replayed. */
  lagBytes: number;
}

/** Lines of a table with one row for each instance. */
export function renderStatus(
  cluster: ClusterView,
  pods: readonly PodView[],
  replication: ReadonlyMap<string, Replication>,
): string[] {
  const rows = pods.map((pod) => {
    const { name } = pod.metadata;
    const role = pod.metadata.labels?.[labels.instanceRole] ?? "unknown";
    const standby = replication.get(name);
    return [
      name,
      role,
      isReady(pod) ? "ready" : "not ready",
      role === "primary" ? "-" : (standby?.state ?? "unknown"),
      role === "primary" ? "-" : standby === undefined ? "unknown" : `${standby.lagBytes} bytes`,
      String(cluster.status?.timelineID ?? "unknown"),
      pod.spec.nodeName ?? "unknown",
    ];
  });
  return renderTable(["INSTANCE", "ROLE", "STATE", "STREAMING", "LAG", "TIMELINE", "NODE"], rows);
}

/** Asks the primary for its standbys; empty when it does not answer. */
export async function readReplication(kubectl: Kubectl, cluster: ClusterView): Promise<Map<string, Replication>> {
  const primary = cluster.status?.currentPrimary;
  if (primary === undefined) return new Map();
  const query =
    "SELECT application_name, state, coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn), 0)::bigint FROM pg_stat_replication";
  const { code, stdout } = await kubectl.try([
    ...["exec", "-n", cluster.metadata.namespace, primary, "-c", "postgres", "--"],
    ...["psql", "-U", "postgres", "-AtF", "|", "-c", query],
  ]);
  return code === 0 ? parseReplication(stdout) : new Map();
}

/** Reads psql's unaligned output. */
export function parseReplication(text: string): Map<string, Replication> {
  const rows = text.split("\n").filter((line) => line !== "");
  return new Map(
    rows.map((line) => {
      const [name = "", state = "", lag = ""] = line.split("|");
      return [name, { state, lagBytes: Number(lag) }];
    }),
  );
}
