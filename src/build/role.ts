import { clusterName, clusterNamespace, secretNames, serviceAccountName } from "../api/cluster-facts.ts";
import { cnpgGroup } from "../api/constants.ts";
import type { Backup } from "../api/generated/backup.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { DatabaseRole } from "../api/generated/databaserole.ts";
import type { PolicyRule, Role, RoleBinding } from "../api/generated/kubernetes.ts";
import { childNames } from "../api/names.ts";
import type { BuildContext } from "./context.ts";
import { childMetadata, managedByLabel } from "./metadata.ts";
import { sameJson } from "./same-json.ts";
import { objectStoreSecrets } from "./store-secrets.ts";

/** Other objects that decide what the instances of a cluster must be able to read. */
export interface RoleSources {
  /** Backup that the cluster recovers from. */
  originBackup?: Backup;
  /** DatabaseRoles that refer to the cluster. */
  databaseRoles?: readonly DatabaseRole[];
}

/** The Role of the cluster's instances. */
export function buildRole(cluster: Cluster, context: BuildContext, sources: RoleSources = {}): Role {
  return {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "Role",
    metadata: childMetadata(cluster, context, {
      name: childNames(clusterName(cluster)).shared,
      labels: managedByLabel,
    }),
    rules: roleRules(cluster, sources),
  };
}

/** Gives the Role to the account that the instances run under. */
export function buildRoleBinding(cluster: Cluster, context: BuildContext): RoleBinding {
  const name = childNames(clusterName(cluster)).shared;
  return {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "RoleBinding",
    metadata: childMetadata(cluster, context, { name, labels: managedByLabel }),
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name },
    subjects: [{ kind: "ServiceAccount", name: serviceAccountName(cluster), namespace: clusterNamespace(cluster) }],
  };
}

/** Whether two lists of rules grant the same; order within a list counts, an absent list equals an empty one. */
export function sameRules(left: readonly PolicyRule[] | undefined, right: readonly PolicyRule[] | undefined): boolean {
  const normal = (rules: readonly PolicyRule[] | undefined) =>
    (rules ?? []).map((rule) => ({
      ...rule,
      resourceNames: rule.resourceNames?.length ? rule.resourceNames : undefined,
    }));
  return sameJson(normal(left), normal(right));
}

function roleRules(cluster: Cluster, sources: RoleSources): PolicyRule[] {
  const own = [clusterName(cluster)];
  const instances = sortedUnique(cluster.status?.instanceNames ?? []);
  const rule = (apiGroup: string, resource: string, verbs: string[], resourceNames?: string[]): PolicyRule => ({
    apiGroups: [apiGroup],
    resources: [resource],
    verbs,
    ...(resourceNames ? { resourceNames } : {}),
  });
  const kind = (resource: string): PolicyRule[] => [
    rule(cnpgGroup, resource, ["get", "update", "list", "watch"]),
    rule(cnpgGroup, `${resource}/status`, ["get", "patch", "update"]),
  ];
  return [
    rule("", "configmaps", ["get", "watch"], readableConfigMaps(cluster)),
    rule("", "secrets", ["get", "watch"], readableSecrets(cluster, sources)),
    rule(cnpgGroup, "clusters", ["get", "list", "watch"], own),
    rule(cnpgGroup, "clusters/status", ["get", "patch", "update", "watch"], own),
    rule(cnpgGroup, "backups", ["list", "get", "delete"]),
    rule(cnpgGroup, "backups/status", ["get", "patch", "update"]),
    rule("", "events", ["create", "patch"]),
    ...kind("databases"),
    ...kind("publications"),
    ...kind("subscriptions"),
    rule("coordination.k8s.io", "leases", ["get", "update"], own),
    rule(cnpgGroup, "failoverquorums", ["get", "list", "watch"], own),
    rule(cnpgGroup, "failoverquorums/status", ["get", "patch", "update", "watch"], own),
    ...kind("databaseroles"),
    // Ours: an instance that is ended looks whether it has time to stop.
    ...(instances.length > 0 ? [rule("", "pods", ["get"], instances)] : []),
  ];
}

function readableConfigMaps(cluster: Cluster): string[] {
  const queries = cluster.spec.monitoring?.customQueriesConfigMap ?? [];
  return sortedUnique([clusterName(cluster), ...queries.map(({ name }) => name)]);
}

function readableSecrets(cluster: Cluster, { originBackup, databaseRoles }: RoleSources): string[] {
  const { spec } = cluster;
  const names = secretNames(cluster);
  const externalClusters = spec.externalClusters ?? [];
  const managedRoles = spec.managed?.roles ?? [];
  return sortedUnique([
    names.replicationTls,
    names.clientCa,
    names.serverCa,
    names.serverTls,
    names.app,
    names.superuser,
    spec.postgresql?.ldap?.bindSearchAuth?.bindPassword?.name,
    ...(spec.monitoring?.customQueriesSecret ?? []).map(({ name }) => name),
    ...objectStoreSecrets(spec.backup?.barmanObjectStore),
    ...objectStoreSecrets(originBackup?.status),
    ...externalClusters.flatMap(({ sslCert, sslKey, sslRootCert, password, barmanObjectStore }) => [
      ...[sslCert, sslKey, sslRootCert, password].map((reference) => reference?.name),
      ...objectStoreSecrets(barmanObjectStore),
    ]),
    ...managedRoles.filter((role) => !role.disablePassword).map((role) => role.passwordSecret?.name),
    ...(databaseRoles ?? [])
      .filter((role) => role.spec.cluster.name === clusterName(cluster))
      .map((role) => role.spec.passwordSecret?.name),
  ]);
}

function sortedUnique(names: readonly (string | undefined)[]): string[] {
  return [...new Set(names.filter((name): name is string => Boolean(name)))].sort();
}
