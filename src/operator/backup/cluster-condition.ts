import type { Cluster } from "../../api/generated/cluster.ts";
import { createMergePatch } from "../../build/merge-patch.ts";
import { resources } from "../../kube/resources.ts";
import { type ClusterStatus, withCondition } from "../../plan/cluster/conditions.ts";
import { formatSeconds } from "../../plan/cluster/timestamps.ts";
import type { Clock } from "../../ports/clock.ts";
import { isKubeError, type KubeApi } from "../../ports/kube-api.ts";
import type { OperatorStores } from "../stores.ts";

interface Deps {
  api: KubeApi;
  stores: Pick<OperatorStores, "clusters">;
  clock: Clock;
}

const type = "LastBackupSucceeded";
/** Others write the status too; each of them can come first so often. */
const maxAttempts = 5;

/** Notes in the Cluster that a backup begins. */
export function noteBackupStarted(deps: Deps, cluster: Cluster, signal: AbortSignal): Promise<void> {
  const condition = { type, status: "False", reason: "BackupStarted", message: "New Backup starting up" } as const;
  return patchStatus(deps, cluster, (status, now) => withCondition(status, condition, now), signal);
}

/** Notes in the Cluster that a backup failed. */
export function noteBackupFailed(deps: Deps, cluster: Cluster, message: string, signal: AbortSignal): Promise<void> {
  const condition = { type, status: "False", reason: "LastBackupFailed", message } as const;
  return patchStatus(
    deps,
    cluster,
    (status, now) => ({ ...withCondition(status, condition, now), lastFailedBackup: formatSeconds(now) }),
    signal,
  );
}

async function patchStatus(
  { api, stores, clock }: Deps,
  { metadata: { namespace = "", name = "" } }: Cluster,
  change: (status: ClusterStatus, now: Date) => ClusterStatus,
  signal: AbortSignal,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const cluster = await api.get(resources.clusters, { namespace, name }, { signal });
    const before = cluster.status ?? {};
    const status = createMergePatch({ ...before }, { ...change(before, new Date(clock.now())) });
    const body = { metadata: { resourceVersion: cluster.metadata.resourceVersion }, status };
    try {
      const written = await api.patch(
        resources.clusters,
        { namespace, name },
        { type: "merge", body },
        { subresource: "status", signal },
      );
      stores.clusters.observeWrite(written);
      return;
    } catch (error) {
      if (!isKubeError(error, "conflict") || attempt === maxAttempts) throw error;
    }
  }
}
