import { isReplicaCluster } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { parsePromotionToken } from "../../postgres/promotion-token.ts";
import { type FieldIssue, forbidden, invalid, required } from "./field-issue.ts";
import { type ClusterRule, when } from "./rule.ts";

/** Clusters that follow another one, and their promotion. */
export const checkReplicaCluster: ClusterRule = (cluster, { mayExist = false }) => {
  const replica = cluster.spec.replica;
  if (!replica) return [];
  return [
    ...when(
      replica.enabled === true && Boolean(replica.primary),
      forbidden("spec.replica.enabled", "replica mode enabled is not compatible with the primary field"),
    ),
    ...(isReplicaCluster(cluster) ? checkReplicaBootstrap(cluster, mayExist) : []),
    ...checkServers(cluster),
    ...checkPromotion(cluster),
  ];
};

function checkReplicaBootstrap(cluster: Cluster, mayExist: boolean): FieldIssue[] {
  const bootstrap = cluster.spec.bootstrap;
  if (!bootstrap || Object.keys(bootstrap).length === 0)
    return [required("spec.bootstrap", "bootstrap configuration is required for replica mode")];
  // An existing cluster may become a replica whatever it was made from.
  const isNew = !cluster.metadata.resourceVersion && !mayExist;
  return when(
    isNew && !bootstrap.pg_basebackup && !bootstrap.recovery,
    invalid(
      "spec.replica",
      cluster.spec.replica,
      "replica mode bootstrap is compatible only with pg_basebackup or recovery",
    ),
  );
}

function checkServers(cluster: Cluster): FieldIssue[] {
  const known = new Set((cluster.spec.externalClusters ?? []).map(({ name }) => name));
  const { source = "", self, primary } = cluster.spec.replica ?? {};
  const named: readonly [field: string, server: string | undefined][] = [
    ["source", source],
    ["self", self || undefined],
    ["primary", primary || undefined],
  ];
  return named.flatMap(([field, server]) =>
    when(
      server !== undefined && !known.has(server),
      invalid(`spec.replica.${field}`, server, `External cluster ${server} not found`),
    ),
  );
}

function checkPromotion(cluster: Cluster): FieldIssue[] {
  const { promotionToken: token, minApplyDelay } = cluster.spec.replica ?? {};
  if (!token) return [];
  return [
    ...when(
      Boolean(minApplyDelay),
      invalid("spec.replica.minApplyDelay", minApplyDelay, "minApplyDelay cannot be applied with a promotion token"),
    ),
    ...when(
      isReplicaCluster(cluster),
      invalid("spec.replica.promotionToken", token, "promotionToken is only allowed for primary clusters"),
    ),
    ...checkToken(token),
  ];
}

function checkToken(token: string): FieldIssue[] {
  const parsed = parsePromotionToken(token);
  if (!("error" in parsed)) return [];
  const part = parsed.error.endsWith("is empty") ? "content" : "format";
  const message = `Invalid promotionToken ${part}: invalid promotion token (${parsed.error})`;
  return [invalid("spec.replica.promotionToken", token, message)];
}
