import type { FailoverQuorum } from "../../api/generated/failoverquorum.ts";
import type { PolledInstance } from "./observed.ts";

/** What a failover asks the record of the synchronous standbys for. */
export interface QuorumQuestion {
  quorum: FailoverQuorum | undefined;
  /** The primary that is to be replaced. */
  primary: string;
  instances: readonly PolledInstance[];
  /** Whether an instance could be the successor: what one holds that may not be chosen is lost all the same. */
  isEligible: (instance: PolledInstance) => boolean;
}

/**
 * Whether enough of the synchronous standbys can be seen to be sure that one of them holds every acknowledged
 * transaction: reachable + acknowledging > all. `null` = allowed, else why not.
 */
export function checkFailoverQuorum({ quorum, primary, instances, isEligible }: QuorumQuestion): string | null {
  const status = quorum?.status;
  if (!status) return "no failover quorum is known";
  const standbys = new Set(status.standbyNames ?? []);
  const acknowledging = status.standbyNumber ?? 0;
  if (standbys.size === 0 || acknowledging <= 0) return "the failover quorum is not set";
  // What another one's transactions waited for tells nothing of this one's.
  if (status.primary && status.primary !== primary) return `the failover quorum is of ${status.primary}`;
  const reachable = instances.filter(
    (it) => it.kind === "answered" && it.ready && standbys.has(it.name) && isEligible(it),
  ).length;
  if (reachable + acknowledging > standbys.size) return null;
  return `only ${reachable} of ${standbys.size} synchronous standbys can take over, ${acknowledging} acknowledge`;
}
