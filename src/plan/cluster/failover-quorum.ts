import type { FailoverQuorum } from "../../api/generated/failoverquorum.ts";
import { quorumShortfall } from "../quorum.ts";
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

/** Why the failover quorum does not let anybody be named; `null` = it does. */
export function checkFailoverQuorum({ quorum, primary, instances, isEligible }: QuorumQuestion): string | null {
  const seen = instances.filter((it) => it.kind === "answered" && it.ready && isEligible(it));
  return quorumShortfall(quorum?.status, { primary, reachable: seen.map(({ name }) => name) });
}
