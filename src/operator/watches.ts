import { secretNames, usesDefaultQueries } from "../api/cluster-facts.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { Node } from "../api/generated/kubernetes.ts";
import { labels } from "../api/labels.ts";
import { controllerOf, isClusterReference } from "../build/metadata.ts";
import { isDrained } from "../plan/cluster/drain.ts";
import { roleOf } from "../plan/cluster/pods.ts";
import type { KubeObject, Store, StoreEvent } from "../ports/kube-api.ts";
import { keyOf } from "./cluster-controller.ts";
import type { OperatorStores } from "./stores.ts";

export interface WatchOptions {
  stores: OperatorStores;
  drainTaints: readonly string[];
  /** Where the operator's own Secrets and ConfigMaps are, and which of them are copied for clusters. */
  sources: { namespace: string; names: readonly string[] };
  enqueue(key: string): void;
}

/** Turns changes of anything that a cluster depends on into passes over that cluster; returns the way to stop. */
export function subscribeWatches({ stores, drainTaints, sources, enqueue }: WatchOptions): () => void {
  const stops: (() => void)[] = [];
  const on = <T extends KubeObject>(store: Store<T>, keysOf: (event: StoreEvent<T>) => readonly string[]) => {
    const stop = store.subscribe((event) => {
      for (const key of keysOf(event)) enqueue(key);
    });
    stops.push(stop);
  };
  const clustersIn = (namespace: string | undefined) => stores.clusters.list(namespace);
  /** A source may be copied into every namespace. */
  const copiesOf = ({ metadata }: KubeObject) =>
    metadata.namespace === sources.namespace && sources.names.includes(metadata.name ?? "")
      ? clustersIn(undefined).map(keyOf)
      : [];

  on(stores.clusters, ({ object }) => [keyOf(object)]);
  const owned = [stores.services, stores.podDisruptionBudgets] as const;
  on(stores.pods, ({ object }) => clusterByLabel(object));
  on(stores.persistentVolumeClaims, ({ object }) => clusterByLabel(object));
  on(stores.jobs, ({ object }) => ownerKeys(object));
  for (const store of owned) on(store as Store<KubeObject>, ({ object }) => ownerKeys(object));
  for (const store of [stores.serviceAccounts, stores.roles, stores.roleBindings] as const) {
    on(store as Store<KubeObject>, ({ object }) => ownerKeys(object));
  }
  on(stores.leases, (event) => (event.type === "deleted" ? ownerKeys(event.object) : []));
  on(stores.secrets, ({ object }) => [
    ...ownerKeys(object),
    ...copiesOf(object),
    ...clustersIn(object.metadata.namespace)
      .filter((it) => usedSecrets(it).has(object.metadata.name ?? ""))
      .map(keyOf),
  ]);
  on(stores.configMaps, ({ object }) => [
    ...ownerKeys(object),
    ...copiesOf(object),
    ...clustersIn(object.metadata.namespace)
      .filter((it) => usedConfigMaps(it).has(object.metadata.name ?? ""))
      .map(keyOf),
  ]);
  on(stores.poolers, ({ object }) => [`${object.metadata.namespace}/${object.spec.cluster.name}`]);
  on(stores.databaseRoles, ({ object }) => [`${object.metadata.namespace}/${object.spec.cluster.name}`]);
  on(stores.imageCatalogs, ({ object }) =>
    clustersIn(object.metadata.namespace)
      .filter((it) => isCatalogOf(it, "ImageCatalog", object.metadata.name))
      .map(keyOf),
  );
  on(stores.clusterImageCatalogs, ({ object }) =>
    clustersIn(undefined)
      .filter((it) => isCatalogOf(it, "ClusterImageCatalog", object.metadata.name))
      .map(keyOf),
  );
  // A cluster that is to be recovered from a Backup waits for its end.
  on(stores.backups, ({ object }) =>
    clustersIn(object.metadata.namespace)
      .filter((it) => it.spec.bootstrap?.recovery?.backup?.name === object.metadata.name)
      .map(keyOf),
  );
  on(stores.failoverQuorums, ({ object }) => ownerKeys(object));
  on(stores.nodes, (event) => {
    if (event.type !== "updated" || !startsDraining(event.previous, event.object, drainTaints)) return [];
    return stores.pods
      .list()
      .filter((it) => it.spec?.nodeName === event.object.metadata.name && roleOf(it) === "primary")
      .flatMap(ownerKeys);
  });
  return () => {
    for (const stop of stops) stop();
  };
}

/** Key of the cluster that controls an object; none when something else does. */
export function ownerKeys(object: KubeObject): string[] {
  const owner = controllerOf(object);
  return owner && isClusterReference(owner) ? [`${object.metadata.namespace}/${owner.name}`] : [];
}

/** A pod of a Job is controlled by the Job, and a volume may belong to nobody yet: the label still names the cluster. */
function clusterByLabel(object: KubeObject): string[] {
  const name = object.metadata.labels?.[labels.cluster];
  return name ? [`${object.metadata.namespace}/${name}`] : ownerKeys(object);
}

function usedSecrets(cluster: Cluster): Set<string> {
  const names = secretNames(cluster);
  return new Set([
    ...Object.values(names),
    ...(cluster.spec.monitoring?.customQueriesSecret ?? []).map((it) => it.name),
    ...(cluster.spec.managed?.roles ?? []).flatMap((it) => it.passwordSecret?.name ?? []),
    ...(cluster.spec.externalClusters ?? []).flatMap((it) =>
      [it.password?.name, it.sslCert?.name, it.sslKey?.name, it.sslRootCert?.name].filter((name) => name !== undefined),
    ),
    ...[cluster.spec.backup?.barmanObjectStore?.endpointCA?.name].filter((name) => name !== undefined),
  ]);
}

function usedConfigMaps(cluster: Cluster): Set<string> {
  const queries = (cluster.spec.monitoring?.customQueriesConfigMap ?? []).map((it) => it.name);
  return new Set([...queries, ...(usesDefaultQueries(cluster) ? ["cnpg-default-monitoring"] : [])]);
}

function isCatalogOf(cluster: Cluster, kind: string, name: string | undefined): boolean {
  const ref = cluster.spec.imageCatalogRef;
  return ref?.kind === kind && ref.name === name;
}

function startsDraining(before: Node | undefined, after: Node, drainTaints: readonly string[]): boolean {
  return isDrained(after, drainTaints) && !(before && isDrained(before, drainTaints));
}
