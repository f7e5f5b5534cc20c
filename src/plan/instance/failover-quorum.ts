import type { FailoverQuorum } from "../../api/generated/failoverquorum.ts";
import type { SynchronousStandbys } from "../../postgres/synchronous.ts";

export interface FailoverQuorumView {
  me: string;
  /** Whether this instance is current and target primary. */
  settledPrimary: boolean;
  /** Whether the Cluster has synchronous replication and asks for the quorum check. */
  active: boolean;
  /** The synchronous standbys as PostgreSQL has loaded them; `undefined` when there are none. */
  loaded: SynchronousStandbys | undefined;
}

/** What the FailoverQuorum object is to say; `undefined` = leave it alone. An empty status blocks a failover. */
export function planFailoverQuorum(view: FailoverQuorumView): NonNullable<FailoverQuorum["status"]> | undefined {
  if (!view.settledPrimary || !view.active) return undefined;
  if (!view.loaded) return {};
  return {
    method: view.loaded.method,
    // A commit never waits for the primary itself, although the list may name it.
    standbyNames: view.loaded.standbyNames.filter((name) => name !== view.me),
    standbyNumber: view.loaded.number,
    primary: view.me,
  };
}
