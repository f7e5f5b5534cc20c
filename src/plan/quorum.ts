import type { FailoverQuorum } from "../api/generated/failoverquorum.ts";

/**
 * Whether enough of the synchronous standbys can be seen to be sure that one of them holds every acknowledged
 * transaction: reachable + acknowledging > all. `null` = they can, else why not.
 */
export function quorumShortfall(
  status: FailoverQuorum["status"],
  view: {
    /** The primary that is to be replaced. */
    primary: string;
    /** Instances whose WAL is known and could become the primary's. */
    reachable: readonly string[];
  },
): string | null {
  if (!status) return "no failover quorum is known";
  const standbys = new Set(status.standbyNames ?? []);
  const acknowledging = status.standbyNumber ?? 0;
  if (standbys.size === 0 || acknowledging <= 0) return "the failover quorum is not set";
  // What another one's transactions waited for tells nothing of this one's.
  if (status.primary && status.primary !== view.primary) return `the failover quorum is of ${status.primary}`;
  const reachable = new Set(view.reachable.filter((name) => standbys.has(name))).size;
  if (reachable + acknowledging > standbys.size) return null;
  return `only ${reachable} of ${standbys.size} synchronous standbys can take over, ${acknowledging} acknowledge`;
}
