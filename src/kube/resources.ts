import type { Backup } from "../api/generated/backup.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { ClusterImageCatalog } from "../api/generated/clusterimagecatalog.ts";
import type { Database } from "../api/generated/database.ts";
import type { DatabaseRole } from "../api/generated/databaserole.ts";
import type { FailoverQuorum } from "../api/generated/failoverquorum.ts";
import type { ImageCatalog } from "../api/generated/imagecatalog.ts";
import type * as k8s from "../api/generated/kubernetes.ts";
import type { ObjectStore } from "../api/generated/objectstore.ts";
import type { Pooler } from "../api/generated/pooler.ts";
import type { Publication } from "../api/generated/publication.ts";
import type { ScheduledBackup } from "../api/generated/scheduledbackup.ts";
import type { Subscription } from "../api/generated/subscription.ts";
import type { KubeObject, ResourceType } from "../ports/kube-api.ts";

/** An object of a kind whose fields we only pass through. */
export interface OpaqueObject extends KubeObject {
  spec?: Record<string, unknown>;
  status?: Record<string, unknown>;
}

function namespaced<T extends KubeObject>(
  group: string,
  version: string,
  kind: string,
  plural: string,
): ResourceType<T> {
  return { group, version, kind, plural, namespaced: true };
}

function clusterScoped<T extends KubeObject>(
  group: string,
  version: string,
  kind: string,
  plural: string,
): ResourceType<T> {
  return { group, version, kind, plural, namespaced: false };
}

const cnpg = "postgresql.cnpg.io";

/** Every kind that the programs read or write. */
export const resources = {
  pods: namespaced<k8s.Pod>("", "v1", "Pod", "pods"),
  persistentVolumeClaims: namespaced<k8s.PersistentVolumeClaim>(
    "",
    "v1",
    "PersistentVolumeClaim",
    "persistentvolumeclaims",
  ),
  services: namespaced<k8s.Service>("", "v1", "Service", "services"),
  secrets: namespaced<k8s.Secret>("", "v1", "Secret", "secrets"),
  configMaps: namespaced<k8s.ConfigMap>("", "v1", "ConfigMap", "configmaps"),
  serviceAccounts: namespaced<k8s.ServiceAccount>("", "v1", "ServiceAccount", "serviceaccounts"),
  events: namespaced<k8s.Event>("", "v1", "Event", "events"),
  nodes: clusterScoped<k8s.Node>("", "v1", "Node", "nodes"),
  namespaces: clusterScoped<k8s.Namespace>("", "v1", "Namespace", "namespaces"),
  jobs: namespaced<k8s.Job>("batch", "v1", "Job", "jobs"),
  roles: namespaced<k8s.Role>("rbac.authorization.k8s.io", "v1", "Role", "roles"),
  roleBindings: namespaced<k8s.RoleBinding>("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings"),
  podDisruptionBudgets: namespaced<k8s.PodDisruptionBudget>(
    "policy",
    "v1",
    "PodDisruptionBudget",
    "poddisruptionbudgets",
  ),
  leases: namespaced<k8s.Lease>("coordination.k8s.io", "v1", "Lease", "leases"),
  deployments: namespaced<k8s.Deployment>("apps", "v1", "Deployment", "deployments"),
  endpointSlices: namespaced<k8s.EndpointSlice>("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"),
  mutatingWebhookConfigurations: clusterScoped<k8s.MutatingWebhookConfiguration>(
    "admissionregistration.k8s.io",
    "v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
  ),
  validatingWebhookConfigurations: clusterScoped<k8s.ValidatingWebhookConfiguration>(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
  ),
  customResourceDefinitions: clusterScoped<OpaqueObject>(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
  ),
  podMonitors: namespaced<OpaqueObject>("monitoring.coreos.com", "v1", "PodMonitor", "podmonitors"),
  volumeSnapshots: namespaced<OpaqueObject>("snapshot.storage.k8s.io", "v1", "VolumeSnapshot", "volumesnapshots"),
  storageClasses: clusterScoped<OpaqueObject>("storage.k8s.io", "v1", "StorageClass", "storageclasses"),
  clusters: namespaced<Cluster>(cnpg, "v1", "Cluster", "clusters"),
  backups: namespaced<Backup>(cnpg, "v1", "Backup", "backups"),
  scheduledBackups: namespaced<ScheduledBackup>(cnpg, "v1", "ScheduledBackup", "scheduledbackups"),
  poolers: namespaced<Pooler>(cnpg, "v1", "Pooler", "poolers"),
  databases: namespaced<Database>(cnpg, "v1", "Database", "databases"),
  databaseRoles: namespaced<DatabaseRole>(cnpg, "v1", "DatabaseRole", "databaseroles"),
  publications: namespaced<Publication>(cnpg, "v1", "Publication", "publications"),
  subscriptions: namespaced<Subscription>(cnpg, "v1", "Subscription", "subscriptions"),
  imageCatalogs: namespaced<ImageCatalog>(cnpg, "v1", "ImageCatalog", "imagecatalogs"),
  clusterImageCatalogs: clusterScoped<ClusterImageCatalog>(cnpg, "v1", "ClusterImageCatalog", "clusterimagecatalogs"),
  failoverQuorums: namespaced<FailoverQuorum>(cnpg, "v1", "FailoverQuorum", "failoverquorums"),
  objectStores: namespaced<ObjectStore>("barmancloud.cnpg.io", "v1", "ObjectStore", "objectstores"),
} as const;
