import type { Cluster } from "../../api/generated/cluster.ts";
import type { FailoverQuorum } from "../../api/generated/failoverquorum.ts";
import type { PostgresStatus } from "../../api/pg-status.ts";
import { wantsFailoverQuorum } from "../../build/lease.ts";
import { resources } from "../../kube/resources.ts";
import {
  asksBeforePromotion,
  hasAllOf,
  type PeerWal,
  type PromotionDecision,
  peersToAsk,
  planPromotion,
  positionOf,
} from "../../plan/instance/promotion.ts";
import { isKubeError } from "../../ports/kube-api.ts";
import { formatLsn, type Lsn, parseLsn } from "../../postgres/lsn.ts";
import type { InstanceContext } from "../instance-context.ts";
import { readPeer } from "../isolation/promise-client.ts";
import type { LocalSql } from "../local-sql.ts";
import type { PrimaryLease } from "../primary-lease.ts";

/** How long the others may take to tell how far they have come; a failover waits for it. */
const answerLimitMs = 1_000;
/** Where a quorum of answers is wanted, the others are asked so often before the place goes back to the operator. */
const quorumAttempts = 3;
/** Pause between them, in milliseconds. */
const attemptPauseMs = 500;

export interface PromotionCheckDeps {
  context: InstanceContext;
  lease: Pick<PrimaryLease, "replaced">;
  sql: LocalSql;
}

/**
 * Whether this instance may be promoted, which holds the Lease and receives no more WAL: somebody else may have helped to
 * acknowledge what is missing here (ADR 0014). Call it only while the Lease is held: before that the answers are no proof.
 */
export async function checkPromotion(
  deps: PromotionCheckDeps,
  cluster: Cluster,
  signal: AbortSignal,
): Promise<PromotionDecision> {
  const { context, lease, sql } = deps;
  const me = context.settings.podName;
  const former = cluster.status?.currentPrimary ?? "";
  if (!asksBeforePromotion(cluster, me)) return { kind: "promote", reason: "nobody need be asked" };
  const position = await ownPosition(sql);
  const { releasedBy, walEnd } = lease.replaced?.voters ?? {};
  const formerEnd = releasedBy === former && walEnd !== undefined ? parseLsn(walEnd) : undefined;
  const view = { me, former, position, formerEnd };
  if (hasAllOf(view)) return planPromotion({ ...view, peers: [], quorum: "notAsked" });
  for (let attempt = 1; ; attempt += 1) {
    const [peers, quorum] = await Promise.all([
      askPeers(context, peersToAsk(cluster, me), signal),
      wantsFailoverQuorum(cluster) ? readQuorum(context, signal) : ("notAsked" as const),
    ]);
    const decision = planPromotion({ ...view, peers, quorum });
    context.logger.info("Asked the other instances how much WAL they have", {
      decision: decision.kind,
      reason: decision.reason,
      own: shown(position),
      others: Object.fromEntries(peers.map((it) => [it.name, shown(it.position)])),
    });
    if (decision.kind === "promote" || decision.final || attempt === quorumAttempts) return decision;
    await context.clock.sleep(attemptPauseMs, signal);
  }
}

function shown(position: Lsn | undefined): string {
  return position === undefined ? "unknown" : formatLsn(position);
}

async function ownPosition(sql: LocalSql): Promise<Lsn | undefined> {
  const row = await sql.one(
    "SELECT pg_last_wal_receive_lsn()::text AS received, pg_last_wal_replay_lsn()::text AS replayed",
  );
  const text = (value: unknown) => (typeof value === "string" ? value : "");
  return positionOf({ isPrimary: false, receivedLsn: text(row["received"]), replayLsn: text(row["replayed"]) });
}

function askPeers(context: InstanceContext, names: readonly string[], signal: AbortSignal): Promise<PeerWal[]> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(answerLimitMs)]);
  return Promise.all(
    names.map(async (name): Promise<PeerWal> => {
      try {
        const status = JSON.parse(await readPeer(context, { name, path: "/pg/status" }, limit)) as PostgresStatus;
        return { name, position: positionOf(status) };
      } catch (error) {
        context.logger.debug("An instance did not tell how much WAL it has", { instance: name, error });
        return { name, position: undefined };
      }
    }),
  );
}

/** The record as it is; one that is not there allows nothing. */
async function readQuorum(context: InstanceContext, signal: AbortSignal): Promise<FailoverQuorum["status"]> {
  const { kube, settings } = context;
  const key = { namespace: settings.namespace, name: settings.clusterName };
  try {
    return (await kube.get(resources.failoverQuorums, key, { timeoutMs: answerLimitMs, signal })).status;
  } catch (error) {
    if (isKubeError(error, "notFound")) return undefined;
    throw error;
  }
}
