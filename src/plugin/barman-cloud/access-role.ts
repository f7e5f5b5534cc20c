// The Role that lets a cluster's instances read their ObjectStores and the credentials that these name, and its binding.
import { clusterName, clusterNamespace, serviceAccountName } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import type { ObjectMeta, PolicyRule, Role, RoleBinding } from "../../api/generated/kubernetes.ts";
import type { ObjectStore } from "../../api/generated/objectstore.ts";
import { labels } from "../../api/labels.ts";
import { pluginVersion } from "./identity.ts";

/** Label by which the Roles of the plugin are found; its value is the cluster's name. */
export const accessLabel = "barmancloud.cnpg.io/cluster";

const group = "barmancloud.cnpg.io";
const rbac = "rbac.authorization.k8s.io";
const read = ["get", "watch", "list"];

/** Name of both objects. */
export function accessName(cluster: Cluster): string {
  return `${clusterName(cluster)}-barman-cloud`;
}

/** Builds the Role. Throws when the Cluster does not say what it is, because then nobody could own it. */
export function buildAccessRole(cluster: Cluster, stores: readonly ObjectStore[]): Role {
  return { apiVersion: `${rbac}/v1`, kind: "Role", metadata: buildMetadata(cluster), rules: buildAccessRules(stores) };
}

/** Builds the binding; the account that bears the cluster's name is always bound, as older releases did. */
export function buildAccessBinding(cluster: Cluster): RoleBinding {
  const namespace = clusterNamespace(cluster);
  const accounts = [...new Set([clusterName(cluster), serviceAccountName(cluster)])];
  return {
    apiVersion: `${rbac}/v1`,
    kind: "RoleBinding",
    metadata: buildMetadata(cluster),
    subjects: accounts.map((name) => ({ kind: "ServiceAccount", name, namespace })),
    roleRef: { apiGroup: rbac, kind: "Role", name: accessName(cluster) },
  };
}

/** The rules for a set of stores. A rule without names would open every object of the namespace, so there is none then. */
export function buildAccessRules(stores: readonly ObjectStore[]): PolicyRule[] {
  const names = sortedUnique(stores.map(({ metadata }) => metadata.name));
  const secrets = sortedUnique(stores.flatMap(credentialSecrets));
  return [
    rule(group, "objectstores", read, names),
    rule(group, "objectstores/status", ["update"], names),
    rule("", "secrets", read, secrets),
  ].filter(({ resourceNames }) => resourceNames.length > 0);
}

/** Names of the ObjectStores that a Role of the plugin speaks of. */
export function storesOfRole(role: Role): string[] {
  const found = (role.rules ?? []).find(
    ({ apiGroups, resources }) => apiGroups?.includes(group) && resources?.includes("objectstores"),
  );
  return found?.resourceNames ?? [];
}

/** Secrets with credentials; that of the endpoint's authority is mounted instead. */
function credentialSecrets({ spec }: ObjectStore): (string | undefined)[] {
  const { s3Credentials: s3, azureCredentials: azure, googleCredentials: google } = spec.configuration;
  const ambient = azure?.inheritFromAzureAD || azure?.useDefaultAzureCredentials;
  return [
    s3?.accessKeyId,
    s3?.secretAccessKey,
    s3?.region,
    s3?.sessionToken,
    ...(ambient ? [] : [azure?.connectionString, azure?.storageAccount, azure?.storageKey, azure?.storageSasToken]),
    google?.applicationCredentials,
  ].map((reference) => reference?.name);
}

function buildMetadata(cluster: Cluster): ObjectMeta {
  const { apiVersion, kind } = cluster;
  if (!apiVersion || !kind) throw new Error(`Cluster ${clusterName(cluster)} comes without apiVersion or kind`);
  return {
    name: accessName(cluster),
    namespace: clusterNamespace(cluster),
    labels: {
      [accessLabel]: clusterName(cluster),
      [labels.appInstance]: clusterName(cluster),
      [labels.appName]: "barman-cloud-plugin",
      [labels.appVersion]: pluginVersion,
      [labels.appComponent]: "database",
      [labels.appManagedBy]: "plugin-barman-cloud",
    },
    ownerReferences: [
      {
        apiVersion,
        kind,
        name: clusterName(cluster),
        uid: cluster.metadata.uid ?? "",
        controller: true,
        blockOwnerDeletion: true,
      },
    ],
  };
}

function rule(apiGroup: string, resource: string, verbs: string[], resourceNames: string[]) {
  return { apiGroups: [apiGroup], resources: [resource], verbs, resourceNames };
}

function sortedUnique(names: readonly (string | undefined)[]): string[] {
  return [...new Set(names.filter((name) => name !== undefined && name !== ""))].sort() as string[];
}
