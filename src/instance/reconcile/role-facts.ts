import { isReplicaCluster } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { parseTargetPrimary } from "../../api/pg-status.ts";
import { isRewound, newestTimeline, planRole, type RoleDecision } from "../../plan/instance/role.ts";
import type { InstanceContext } from "../instance-context.ts";
import type { Postmaster } from "../postmaster.ts";
import type { PrimaryLease } from "../primary-lease.ts";
import { readRewindRecord } from "./rewind-record.ts";

/** Gathers what the role is decided from, and decides; what costs a process or a request is asked only where it matters. */
export async function decideRole(
  deps: { context: InstanceContext; postmaster: Postmaster; lease: PrimaryLease },
  cluster: Cluster,
  signal: AbortSignal,
): Promise<RoleDecision> {
  const { context, lease, postmaster } = deps;
  const dataRole = await context.data.role();
  const target = parseTargetPrimary(cluster.status?.targetPrimary);
  const current = cluster.status?.currentPrimary ?? "";
  const me = context.settings.podName;
  const wanted = target.kind === "instance" && target.name === me;
  const unclear = dataRole === "primary" && wanted && current !== me && current !== "";
  const running = postmaster.pid !== undefined;
  const labelPath = `${context.paths.pgData}/backup_label`;
  const backupLabel = dataRole === "primary" && !running && (await context.files.exists(labelPath));
  const control = unclear || backupLabel ? await context.data.tryControl() : undefined;
  return planRole({
    me,
    current,
    target,
    replicaCluster: isReplicaCluster(cluster),
    dataRole,
    rewound: isRewound({ backupLabel, controlState: control?.state }),
    rewindUnfinished: dataRole === "primary" && !running && (await readRewindRecord(context)) !== undefined,
    running,
    leaseHolder: unclear ? await lease.readHolder(signal) : undefined,
    timeline: control && newestTimeline(control),
    clusterTimeline: cluster.status?.timelineID ?? 0,
  });
}
