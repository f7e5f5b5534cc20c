import type { Cluster } from "./generated/cluster.ts";
import { annotations } from "./labels.ts";

/** What of the primary Lease decides whether a person's word is asked for. */
export interface LeaseHistory {
  /** Empty when nobody holds it. */
  holder: string;
  transitions: number;
  /** Listed voters; `undefined` when there is no list. */
  voters: readonly string[] | undefined;
}

/**
 * The instance that a person named to be the primary (annotation `cnpg-ts.dev/namedPrimary` on the Cluster), where the primary
 * Lease itself lets nobody go on: it was made anew and tells of no voters, or every voter it lists has left the cluster. In
 * any other state the word counts for nothing, because somebody may hold the right to write.
 */
export function namedPrimary(cluster: Cluster, lease: LeaseHistory): string | undefined {
  const name = cluster.metadata.annotations?.[annotations.namedPrimary];
  const instances = cluster.status?.instanceNames ?? [];
  if (!name || !instances.includes(name)) return undefined;
  const { voters = [] } = lease;
  if (voters.length > 0) return voters.some((voter) => instances.includes(voter)) ? undefined : name;
  return lease.holder === "" && lease.transitions === 0 ? name : undefined;
}
