import { isReplicaCluster } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import type { FailoverQuorum } from "../../api/generated/failoverquorum.ts";
import { annotations } from "../../api/labels.ts";
import type { PostgresStatus } from "../../api/pg-status.ts";
import { type Lsn, parseLsn } from "../../postgres/lsn.ts";
import { quorumShortfall } from "../quorum.ts";

/** How far an instance has come, as it told after the right of the former primary was over. */
export interface PeerWal {
  name: string;
  /** `undefined`: it did not answer, or does not know; never "less". */
  position: Lsn | undefined;
}

export interface PromotionView {
  me: string;
  /** The primary that is to be replaced. */
  former: string;
  /** WAL of the own; `undefined` ranks below every position, as in the operator's election. */
  position: Lsn | undefined;
  /** Where the WAL of the former primary ends, if it was stopped in order and has said so. */
  formerEnd: Lsn | undefined;
  /** The others, without the former primary. */
  peers: readonly PeerWal[];
  /** The record of the synchronous standbys, as far as there is one; `"notAsked"`: the Cluster wants no quorum check. */
  quorum: FailoverQuorum["status"] | "notAsked";
}

export type PromotionDecision =
  | { kind: "promote"; reason: string }
  /** `final`: another answer changes nothing, so the place goes back to the operator at once. */
  | { kind: "decline"; final: boolean; reason: string };

/** Whether acknowledged transactions may not be lost here, so that the others are asked before a promotion (ADR 0014). */
export function asksBeforePromotion(cluster: Cluster, me: string): boolean {
  if (isReplicaCluster(cluster)) return false;
  // A person who names the primary has decided what may be lost.
  if (cluster.metadata.annotations?.[annotations.namedPrimary] === me) return false;
  const { postgresql, minSyncReplicas = 0 } = cluster.spec;
  const { synchronous } = postgresql ?? {};
  if (!synchronous) return minSyncReplicas > 0;
  return synchronous.dataDurability !== "preferred" || synchronous.failoverQuorum === true;
}

/** Whom to ask: the former primary is over, and what only it has was never acknowledged. */
export function peersToAsk(cluster: Cluster, me: string): string[] {
  const { instanceNames = [], currentPrimary } = cluster.status ?? {};
  return instanceNames.filter((name) => name !== me && name !== currentPrimary);
}

/** Whether everything that the former primary ever wrote is here, so that nobody need be asked. */
export function hasAllOf(view: Pick<PromotionView, "position" | "formerEnd">): boolean {
  const { position, formerEnd } = view;
  return position !== undefined && formerEnd !== undefined && position >= formerEnd;
}

/**
 * Decides about a promotion once the Lease is held. Nothing was acknowledged since then, so whoever answers tells of
 * everything that it helped to acknowledge. Positions are compared as the operator's election does, without timelines:
 * two orders would hand the place back and forth for ever.
 */
export function planPromotion(view: PromotionView): PromotionDecision {
  if (hasAllOf(view)) return { kind: "promote", reason: `all WAL of ${view.former} is here` };
  const own = view.position ?? -1n;
  const ahead = view.peers.find(({ position }) => position !== undefined && position > own);
  if (ahead)
    return { kind: "decline", final: true, reason: `${ahead.name} has WAL of ${view.former} that is missing here` };
  if (view.quorum !== "notAsked") {
    const known = view.peers.filter(({ position }) => position !== undefined).map(({ name }) => name);
    const reachable = view.position === undefined ? known : [view.me, ...known];
    const shortfall = quorumShortfall(view.quorum, { primary: view.former, reachable });
    if (shortfall !== null) return { kind: "decline", final: false, reason: `${shortfall}${wayOut(view)}` };
  }
  return { kind: "promote", reason: "nobody who answers has more WAL" };
}

/** What a person can do who wants to go on. */
function wayOut({ me, peers }: PromotionView): string {
  const unknown = peers.filter(({ position }) => position === undefined).map(({ name }) => name);
  const toReach = unknown.length > 0 ? ` ${unknown.join(" and ")} did not tell ${me} how much WAL is there.` : "";
  return (
    `.${toReach} Let the instances reach each other; or, to go on with what ${me} has and lose what it may lack, annotate ` +
    `the Cluster with ${annotations.namedPrimary}=${me}`
  );
}

/** What an instance's status tells of its WAL: `undefined` from a primary, or while it has not seen all that lies on its disk. */
export function positionOf(status: Partial<PostgresStatus>): Lsn | undefined {
  if (status.isPrimary !== false || status.cnpgTs?.walEndKnown === false) return undefined;
  const positions = [status.receivedLsn, status.replayLsn].map((text) =>
    text === undefined ? undefined : parseLsn(text),
  );
  return positions.reduce((most, it) => (most === undefined || (it !== undefined && it > most) ? it : most), undefined);
}
