import type { FailoverQuorum } from "../../api/generated/failoverquorum.ts";
import type { PolledInstance } from "./observed.ts";

/**
 * Whether enough of the synchronous standbys can be seen to be sure that one of them holds every acknowledged
 * transaction: reachable + acknowledging > all. `null` = allowed, else why not.
 */
export function checkFailoverQuorum(
  quorum: FailoverQuorum | undefined,
  instances: readonly PolledInstance[],
): string | null {
  const status = quorum?.status;
  if (!status) return "no failover quorum is known";
  const standbys = new Set(status.standbyNames ?? []);
  const acknowledging = status.standbyNumber ?? 0;
  if (standbys.size === 0 || acknowledging <= 0) return "the failover quorum is not set";
  const reachable = instances.filter((it) => it.kind === "answered" && it.ready && standbys.has(it.name)).length;
  if (reachable + acknowledging > standbys.size) return null;
  return `only ${reachable} of ${standbys.size} synchronous standbys can be reached, ${acknowledging} acknowledge`;
}
