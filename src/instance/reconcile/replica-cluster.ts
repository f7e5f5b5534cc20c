import { isReplicaCluster, pendingPromotionToken } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { phases } from "../../api/phases.ts";
import { replicaConditions, replicaConditionTexts, replicaTransition } from "../../api/replica-conditions.ts";
import { checkReplayedPoint, checkTokenAgainst, planDesignation } from "../../plan/instance/replica-cluster.ts";
import type { RoleDecision } from "../../plan/instance/role.ts";
import type { TokenCheck } from "../../postgres/promotion-token.ts";
import type { InstanceContext } from "../instance-context.ts";
import { mightBeUnavailable } from "../instance-state.ts";
import { type LocalSql, withSession } from "../local-sql.ts";
import type { Postmaster } from "../postmaster.ts";
import type { ClusterStatusWriter } from "./cluster-status.ts";
import { demote } from "./demote.ts";
import { refreshOverride } from "./files-step.ts";

interface ReplicaDeps {
  context: InstanceContext;
  postmaster: Postmaster;
  status: ClusterStatusWriter;
}

/** Tells the Cluster what the designated primary is and has done; the role must have been decided from this Cluster. */
export async function settleDesignated(deps: ReplicaDeps, cluster: Cluster, signal: AbortSignal): Promise<void> {
  const { context, status } = deps;
  const { claimCurrent, completeTransition } = planDesignation({
    me: context.settings.podName,
    current: cluster.status?.currentPrimary ?? "",
    transition: replicaTransition(cluster),
    unavailable: mightBeUnavailable(context.state),
  });
  if (claimCurrent) {
    context.logger.info("This instance is the designated primary", { source: cluster.spec.replica?.source });
    // It takes no writes, so it needs no right to.
    await status.claimPrimary((current) => isReplicaCluster(current), signal);
  }
  if (completeTransition) {
    const wanted = { type: replicaConditions.transition, status: "True" as const };
    await status.setCondition({ ...wanted, ...replicaConditionTexts.transitionDone }, signal);
    context.logger.info("This instance has become the designated primary of a replica cluster");
  }
}

/** Turns the primary of a cluster that is being demoted into a standby of its source, while the fence keeps it down. */
export async function demoteWhileFenced(
  deps: ReplicaDeps,
  cluster: Cluster,
  role: RoleDecision,
  signal: AbortSignal,
): Promise<void> {
  const { context, postmaster } = deps;
  const isCurrent = cluster.status?.currentPrimary === context.settings.podName;
  if (!context.state.fenced || postmaster.pid !== undefined || replicaTransition(cluster) !== "asked" || !isCurrent)
    return;
  if (role.kind === "demote") {
    await demote(context, cluster, { rewind: role.rewind, signal });
    await refreshOverride(context, cluster);
  } else if (role.kind !== "standby" || !role.designated) {
    return;
  }
  await settleDesignated(deps, cluster, signal);
}

/** Whether the instance is at the very point where the former primary cluster stopped; without a token any point will do. */
export async function checkPendingToken(
  context: InstanceContext,
  cluster: Cluster,
  sql: LocalSql,
): Promise<TokenCheck> {
  const token = pendingPromotionToken(cluster);
  if (token === undefined) return { kind: "promote" };
  const row = await sql.one("SELECT pg_last_wal_replay_lsn()::text AS replayed");
  const early = checkReplayedPoint(token, String(row["replayed"] ?? ""));
  if (early) return early;
  await withSession(context, "postgres", (session) => session.query("CHECKPOINT"), { unlimited: true });
  return checkTokenAgainst(token, await context.data.control());
}

/** Tells how the wait for a token's point goes; a token that can never be reached is for a person to replace. */
export async function reportTokenCheck(
  { context, status }: Pick<ReplicaDeps, "context" | "status">,
  check: Exclude<TokenCheck, { kind: "promote" }>,
  signal: AbortSignal,
): Promise<void> {
  const { phase, phaseReason } = context.state.cluster?.status ?? {};
  const [wanted, reason] =
    check.kind === "fatal"
      ? [phases.unrecoverable, "Promotion token content is not correct for current instance"]
      : [phases.promotingReplicaCluster, "Replica cluster promotion in progress"];
  if (phase === wanted && phaseReason === reason) return;
  if (check.kind === "fatal") {
    context.logger.error("This instance is not promoted: the token is not for it as it is", { reason: check.reason });
  }
  await status.setPhase(wanted, reason, signal);
}

/** Records the token of a promotion that went through without being recorded, or that had nothing to do. */
export async function recordToken(status: ClusterStatusWriter, cluster: Cluster, signal: AbortSignal): Promise<void> {
  const token = pendingPromotionToken(cluster);
  if (token === undefined) return;
  await status.update(
    (current) => (current.lastPromotionToken === token ? current : { ...current, lastPromotionToken: token }),
    signal,
  );
}
