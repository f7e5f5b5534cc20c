import type { ConfigMap, Node, Secret } from "../api/generated/kubernetes.ts";
import { labels } from "../api/labels.ts";
import { defaultMonitoringName } from "../api/names.ts";
import { combineStores } from "../kube/combined-store.ts";
import type { ListWatch } from "../kube/kube-client.ts";
import { resources } from "../kube/resources.ts";
import { createStore, dropManagedFields } from "../kube/store.ts";
import type { Clock } from "../ports/clock.ts";
import type { KubeObject, ResourceType, Store } from "../ports/kube-api.ts";
import type { Logger } from "../ports/logger.ts";
import type { Runnable } from "../runtime/runnable.ts";

/** Local copies of everything that decisions rest on. */
export type OperatorStores = ReturnType<typeof createOperatorStores>["stores"];

export interface OperatorStoresOptions {
  source: ListWatch;
  clock: Clock;
  logger: Logger;
  /** Empty = all. */
  watchNamespaces: readonly string[];
  operatorNamespace: string;
  /** Names in the operator's namespace whose content is copied into those of clusters. */
  sourceNames: readonly string[];
}

/** Makes the stores and the parts of the program that fill them. */
export function createOperatorStores(options: OperatorStoresOptions) {
  const parts: Runnable[] = [];
  const namespaces =
    options.watchNamespaces.length === 0
      ? []
      : [...new Set([...options.watchNamespaces, options.operatorNamespace])].filter((it) => it !== "");

  function store<T extends KubeObject>(
    type: ResourceType<T>,
    extra: { labelSelector?: string; transform?: (object: T) => T } = {},
  ): Store<T> {
    const common = { logger: options.logger, clock: options.clock, ...extra };
    if (namespaces.length === 0 || !type.namespaced) {
      const single = createStore(options.source, type, common);
      parts.push(single);
      return single;
    }
    const byNamespace = namespaces.map((namespace) => {
      const part = createStore(options.source, type, { ...common, namespace });
      parts.push(part);
      return [namespace, part] as const;
    });
    return combineStores(new Map(byNamespace));
  }

  const ofClusters = { labelSelector: labels.cluster };
  const stores = {
    clusters: store(resources.clusters),
    pods: store(resources.pods, ofClusters),
    persistentVolumeClaims: store(resources.persistentVolumeClaims, ofClusters),
    jobs: store(resources.jobs, ofClusters),
    services: store(resources.services),
    secrets: store(resources.secrets, { transform: (it) => slimSecret(it, options.sourceNames) }),
    configMaps: store(resources.configMaps, { transform: (it) => slimConfigMap(it, options.sourceNames) }),
    serviceAccounts: store(resources.serviceAccounts, ofClusters),
    roles: store(resources.roles, ofClusters),
    roleBindings: store(resources.roleBindings, ofClusters),
    podDisruptionBudgets: store(resources.podDisruptionBudgets, ofClusters),
    leases: store(resources.leases, ofClusters),
    nodes: store(resources.nodes, { transform: slimNode }),
    poolers: store(resources.poolers),
    databaseRoles: store(resources.databaseRoles),
    imageCatalogs: store(resources.imageCatalogs),
    clusterImageCatalogs: store(resources.clusterImageCatalogs),
    failoverQuorums: store(resources.failoverQuorums),
    backups: store(resources.backups),
    scheduledBackups: store(resources.scheduledBackups),
  };
  return { stores, parts };
}

/** Most Secrets are only watched for their version: their content does not stay in memory. */
function slimSecret(secret: Secret, sourceNames: readonly string[]): Secret {
  dropManagedFields(secret);
  const { data, type } = secret;
  const name = secret.metadata.name ?? "";
  const isNeeded =
    type === "kubernetes.io/tls" ||
    data?.["ca.crt"] !== undefined ||
    data?.["tls.crt"] !== undefined ||
    name === defaultMonitoringName ||
    name.endsWith("-pull") ||
    sourceNames.includes(name);
  if (!isNeeded) delete secret.data;
  return secret;
}

function slimConfigMap(configMap: ConfigMap, sourceNames: readonly string[]): ConfigMap {
  dropManagedFields(configMap);
  const name = configMap.metadata.name ?? "";
  if (name !== defaultMonitoringName && !sourceNames.includes(name)) delete configMap.data;
  return configMap;
}

function slimNode(node: Node): Node {
  dropManagedFields(node);
  delete node.status;
  delete node.metadata.annotations;
  return node;
}
