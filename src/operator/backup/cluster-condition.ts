import type { Cluster } from "../../api/generated/cluster.ts";
import { patchStatus } from "../../kube/patch-status.ts";
import { resources } from "../../kube/resources.ts";
import { type ClusterStatus, withCondition } from "../../plan/cluster/conditions.ts";
import { formatSeconds } from "../../plan/cluster/timestamps.ts";
import type { Clock } from "../../ports/clock.ts";
import type { KubeApi } from "../../ports/kube-api.ts";
import type { OperatorStores } from "../stores.ts";

interface Deps {
  api: KubeApi;
  stores: Pick<OperatorStores, "clusters">;
  clock: Clock;
}

const type = "LastBackupSucceeded";

/** Notes in the Cluster that a backup begins. */
export function noteBackupStarted(deps: Deps, cluster: Cluster, signal: AbortSignal): Promise<void> {
  const condition = { type, status: "False", reason: "BackupStarted", message: "New Backup starting up" } as const;
  return noteInStatus(deps, cluster, (status, now) => withCondition(status, condition, now), signal);
}

/** Notes in the Cluster that a backup failed. */
export function noteBackupFailed(deps: Deps, cluster: Cluster, message: string, signal: AbortSignal): Promise<void> {
  const condition = { type, status: "False", reason: "LastBackupFailed", message } as const;
  return noteInStatus(
    deps,
    cluster,
    (status, now) => ({ ...withCondition(status, condition, now), lastFailedBackup: formatSeconds(now) }),
    signal,
  );
}

async function noteInStatus(
  { api, stores, clock }: Deps,
  { metadata: { namespace = "", name = "" } }: Cluster,
  change: (status: ClusterStatus, now: Date) => ClusterStatus,
  signal: AbortSignal,
): Promise<void> {
  const written = await patchStatus(
    api,
    resources.clusters,
    { namespace, name },
    (current) => ({ ...current, status: change(current.status ?? {}, new Date(clock.now())) }),
    { signal },
  );
  stores.clusters.observeWrite(written);
}
