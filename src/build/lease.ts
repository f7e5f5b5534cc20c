import { clusterName, clusterNamespace } from "../api/cluster-facts.ts";
import { cnpgApiVersion } from "../api/constants.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { FailoverQuorum } from "../api/generated/failoverquorum.ts";
import type { Lease } from "../api/generated/kubernetes.ts";
import { childNames } from "../api/names.ts";
import type { BuildContext } from "./context.ts";
import { childMetadata, controllerOf, isClusterReference, ownsObject } from "./metadata.ts";
import { mergeMetadata } from "./metadata-repair.ts";

/** The Lease that says who may write; its spec is the instance managers' alone. */
export function buildLease(cluster: Cluster, context: BuildContext): Lease {
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: childMetadata(cluster, context, { name: childNames(clusterName(cluster)).shared }),
    spec: {},
  };
}

/** What to do about the Lease. */
export type LeasePlan =
  | { kind: "create"; lease: Lease }
  | { kind: "keep" }
  /** The Lease of an earlier cluster of this name, or nobody's: ours from now on. */
  | { kind: "adopt"; lease: Lease }
  | { kind: "conflict"; message: string };

/** Decides about the Lease; one that something else controls is never touched. */
export function planLease(cluster: Cluster, live: Lease | undefined, context: BuildContext): LeasePlan {
  const lease = buildLease(cluster, context);
  if (!live) return { kind: "create", lease };
  if (ownsObject(cluster, live)) return { kind: "keep" };
  const owner = controllerOf(live);
  const stale = isClusterReference(owner) && owner?.name === clusterName(cluster);
  if (owner && !stale)
    return {
      kind: "conflict",
      message:
        `primary lease ${clusterNamespace(cluster)}/${live.metadata.name} is controlled by ` +
        `${owner.kind} "${owner.name}", refusing to adopt`,
    };
  const metadata = mergeMetadata(live.metadata, lease.metadata) ?? live.metadata;
  return {
    kind: "adopt",
    lease: { ...live, metadata: { ...metadata, ownerReferences: lease.metadata.ownerReferences ?? [] } },
  };
}

/** Whether the cluster keeps a record of who must be heard before a failover. */
export function wantsFailoverQuorum(cluster: Cluster): boolean {
  return cluster.spec.postgresql?.synchronous?.failoverQuorum ?? false;
}

/** The record itself; its status is written by the primary. */
export function buildFailoverQuorum(cluster: Cluster, context: BuildContext): FailoverQuorum {
  return {
    apiVersion: cnpgApiVersion,
    kind: "FailoverQuorum",
    metadata: childMetadata(cluster, context, { name: childNames(clusterName(cluster)).shared }),
  };
}
