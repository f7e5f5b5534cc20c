import { clusterName, clusterNamespace, secretNames } from "../api/cluster-facts.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { Lease, ServiceAccount } from "../api/generated/kubernetes.ts";
import { labels } from "../api/labels.ts";
import type { ObservedCertificate } from "../build/certificates.ts";
import { ownsObject } from "../build/metadata.ts";
import { resources } from "../kube/resources.ts";
import { inspectAuthority, inspectLeaf, secretText } from "../pki/inspect.ts";
import type {
  ManagerUpload,
  ObservedCluster,
  OperatorFacts,
  PolledInstance,
  RolloutSlot,
} from "../plan/cluster/observed.ts";
import { isActivePod, isReadyPod } from "../plan/cluster/pods.ts";
import { planStatusLimit } from "../plan/cluster/status-call.ts";
import { isKubeError, type KubeApi, type KubeObject } from "../ports/kube-api.ts";
import { formatSelector } from "./label-selector.ts";
import type { LeaseSilence } from "./lease-silence.ts";
import type { StatusClient } from "./status-client.ts";
import type { OperatorStores } from "./stores.ts";

export interface ObserverOptions {
  api: KubeApi;
  stores: OperatorStores;
  statusClient: StatusClient;
  facts: OperatorFacts;
  rolloutSlot(): RolloutSlot | undefined;
  /** What became of the managers that instances were sent, by UID of the pod. @default - none was */
  managerUploads?: () => ReadonlyMap<string, ManagerUpload>;
  /** Whether the API server knows PodMonitors by now. */
  podMonitors(signal: AbortSignal): Promise<boolean>;
  /** How long the primary Leases have been the same. */
  leaseSilence?: LeaseSilence;
}

/** Turns the world, as far as one cluster is concerned, into one value. */
export interface ClusterObserver {
  /** Everything but the instances' own words; no instance is asked. */
  observe(cluster: Cluster, now: number, signal: AbortSignal): Promise<ObservedCluster>;
  /** Asks every active instance, side by side and each within its own limit, so that none waits for one that hangs. */
  poll(cluster: Cluster, signal: AbortSignal): Promise<PolledInstance[]>;
}

export function createClusterObserver(options: ObserverOptions): ClusterObserver {
  const { stores, facts } = options;

  async function observe(cluster: Cluster, now: number, signal: AbortSignal): Promise<ObservedCluster> {
    const namespace = clusterNamespace(cluster);
    const name = clusterName(cluster);
    const [lease, serviceAccounts, selectedPods, podMonitor, recoverySnapshots] = await Promise.all([
      observeLease(options, namespace, name, signal),
      observeServiceAccounts(options, cluster, signal),
      observeSelectedPods(options, cluster, signal),
      observePodMonitor(options, cluster, signal),
      observeRecoverySnapshots(options, cluster, signal),
    ]);
    const operatorObjects = observeOperatorObjects(options);
    const ofCluster = stores.pods.list(namespace).filter((it) => it.metadata.labels?.[labels.cluster] === name);
    return {
      pods: sorted(ofCluster.filter((it) => ownsObject(cluster, it))),
      jobPods: sorted(ofCluster.filter((it) => it.metadata.labels?.[labels.jobRole] !== undefined)),
      orphanPods: sorted(ofCluster.filter((it) => isOrphan(it) && it.metadata.labels?.[labels.podRole] === "instance")),
      orphanVolumes: sorted(
        stores.persistentVolumeClaims
          .list(namespace)
          .filter((it) => isOrphan(it) && it.metadata.labels?.[labels.cluster] === name),
      ),
      volumes: sorted(stores.persistentVolumeClaims.list(namespace).filter((it) => ownsObject(cluster, it))),
      jobs: sorted(stores.jobs.list(namespace).filter((it) => ownsObject(cluster, it))),
      nodes: byName(stores.nodes.list()),
      instances: [],
      secrets: byName(stores.secrets.list(namespace)),
      certificates: observeCertificates(options, cluster, now),
      configMaps: byName(stores.configMaps.list(namespace)),
      services: byName(stores.services.list(namespace)),
      serviceAccounts,
      roles: byName(stores.roles.list(namespace)),
      roleBindings: byName(stores.roleBindings.list(namespace)),
      budgets: byName(stores.podDisruptionBudgets.list(namespace)),
      lease: lease.object,
      ...(lease.unchangedMs === undefined ? {} : { leaseUnchangedMs: lease.unchangedMs }),
      failoverQuorum: stores.failoverQuorums.get({ namespace, name }),
      poolers: stores.poolers.list(namespace).filter((it) => it.spec.cluster.name === name),
      databaseRoles: stores.databaseRoles.list(namespace).filter((it) => it.spec.cluster.name === name),
      imageCatalogs: byName(stores.imageCatalogs.list(namespace)),
      clusterImageCatalogs: byName(stores.clusterImageCatalogs.list()),
      backups: byName(stores.backups.list(namespace)),
      ...(recoverySnapshots ? { recoverySnapshots } : {}),
      operatorObjects,
      selectedPods,
      ...(podMonitor ? { podMonitor } : {}),
      rolloutSlot: options.rolloutSlot(),
      managerUploads: new Map(options.managerUploads?.() ?? []),
      operator: facts,
    };
  }

  async function poll(cluster: Cluster, signal: AbortSignal): Promise<PolledInstance[]> {
    const namespace = clusterNamespace(cluster);
    const lease = stores.leases.get({ namespace, name: clusterName(cluster) });
    const secret = stores.secrets.get({ namespace, name: secretNames(cluster).serverCa });
    const serverCa = secret ? secretText(secret, "ca.crt") : undefined;
    const pods = stores.pods.list(namespace).filter((it) => ownsObject(cluster, it) && isActivePod(it));
    return Promise.all(
      pods.map((pod) =>
        options.statusClient.poll(pod, serverCa, signal, planStatusLimit(pod.metadata.name ?? "", lease)),
      ),
    );
  }

  return { observe, poll };
}

/** Pairs answers with the pods as they are by now; an answer of a pod that was replaced meanwhile is dropped. */
export function matchAnswers(polled: readonly PolledInstance[], observed: ObservedCluster): ObservedCluster {
  const instances = polled.flatMap((it): PolledInstance[] => {
    const pod = observed.pods.find((candidate) => candidate.metadata.uid === it.pod.metadata.uid);
    if (!pod || !isActivePod(pod)) return [];
    return [{ ...it, pod, ready: isReadyPod(pod) }];
  });
  return { ...observed, instances };
}

/** The store holds labelled Leases only; one without the label may still be in the way, so absence is asked for. */
async function observeLease(
  { api, stores, leaseSilence }: ObserverOptions,
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<{ object: Lease | undefined; unchangedMs: number | undefined }> {
  const known = stores.leases.get({ namespace, name });
  const read = () => getOrUndefined(api.get(resources.leases, { namespace, name }, { signal }));
  if (!known) return { object: await read(), unchangedMs: undefined };
  if (!leaseSilence?.isSilent(known)) return { object: known, unchangedMs: leaseSilence?.unchangedMs(known) };
  // The store may be the one that hears nothing.
  const live = await read();
  return { object: live, unchangedMs: live && leaseSilence.unchangedMs(live) };
}

async function observeServiceAccounts(
  { api, stores }: ObserverOptions,
  cluster: Cluster,
  signal: AbortSignal,
): Promise<Map<string, ServiceAccount>> {
  const namespace = clusterNamespace(cluster);
  const accounts = byName(stores.serviceAccounts.list(namespace));
  const given = cluster.spec.serviceAccountName;
  if (given && !accounts.has(given)) {
    const account = await getOrUndefined(api.get(resources.serviceAccounts, { namespace, name: given }, { signal }));
    if (account) accounts.set(given, account);
  }
  return accounts;
}

async function observeSelectedPods(
  { api }: ObserverOptions,
  cluster: Cluster,
  signal: AbortSignal,
): Promise<{ name: string; ips: string[] }[]> {
  return Promise.all(
    (cluster.spec.podSelectorRefs ?? []).map(async ({ name, selector }) => {
      const labelSelector = formatSelector(selector);
      if (labelSelector === undefined) return { name, ips: [] };
      const pods = await api.list(resources.pods, { namespace: clusterNamespace(cluster), labelSelector, signal });
      const ips = pods
        .filter((it) => !it.metadata.deletionTimestamp)
        .flatMap((it) => (it.status?.podIPs ?? []).map((entry) => entry.ip ?? ""));
      return { name, ips: [...new Set(ips.filter((ip) => ip !== ""))].sort() };
    }),
  );
}

async function observePodMonitor(
  options: ObserverOptions,
  cluster: Cluster,
  signal: AbortSignal,
): Promise<ObservedCluster["podMonitor"]> {
  if (!(await options.podMonitors(signal))) return undefined;
  const key = { namespace: clusterNamespace(cluster), name: clusterName(cluster) };
  const live = await getOrUndefined(options.api.get(resources.podMonitors, key, { signal }));
  if (!live || !ownsObject(cluster, live)) return {};
  return { object: { metadata: live.metadata, ...(live.spec ? { spec: live.spec } : {}) } };
}

/** The snapshots that the first primary is made from; nothing of them is asked for once there is one. */
async function observeRecoverySnapshots(
  { api, stores }: ObserverOptions,
  cluster: Cluster,
  signal: AbortSignal,
): Promise<ObservedCluster["recoverySnapshots"]> {
  const recovery = cluster.spec.bootstrap?.recovery;
  if (!recovery || cluster.status?.currentPrimary) return undefined;
  const namespace = clusterNamespace(cluster);
  const { storage, walStorage, tablespaceStorage = {} } = recovery.volumeSnapshots ?? {};
  const backup = recovery.backup && stores.backups.get({ namespace, name: recovery.backup.name });
  const named = [storage, walStorage, ...Object.values(tablespaceStorage)];
  const names = new Set([
    ...named.flatMap((it) => (it?.kind === "VolumeSnapshot" ? [it.name] : [])),
    ...(backup?.status?.snapshotBackupStatus?.elements ?? []).map((it) => it.name),
  ]);
  const found = await Promise.all(
    [...names].map((name) => getOrUndefined(api.get(resources.volumeSnapshots, { namespace, name }, { signal }))),
  );
  return byName(found.filter((it) => it !== undefined));
}

function observeOperatorObjects({ stores, facts }: ObserverOptions): ObservedCluster["operatorObjects"] {
  const { operatorNamespace, pullSecretName, monitoringQueriesConfigMap, monitoringQueriesSecret } = facts.context;
  if (!operatorNamespace) return {};
  const key = (name: string) => ({ namespace: operatorNamespace, name });
  const pullSecret = pullSecretName ? stores.secrets.get(key(pullSecretName)) : undefined;
  const queriesConfigMap = monitoringQueriesConfigMap
    ? stores.configMaps.get(key(monitoringQueriesConfigMap))
    : undefined;
  const queriesSecret = monitoringQueriesSecret ? stores.secrets.get(key(monitoringQueriesSecret)) : undefined;
  return {
    ...(pullSecret ? { pullSecret } : {}),
    ...(queriesConfigMap ? { queriesConfigMap } : {}),
    ...(queriesSecret ? { queriesSecret } : {}),
  };
}

function observeCertificates(
  { stores }: ObserverOptions,
  cluster: Cluster,
  now: number,
): Map<string, ObservedCertificate> {
  const names = secretNames(cluster);
  const secret = (name: string) => stores.secrets.get({ namespace: clusterNamespace(cluster), name });
  const serverCa = secret(names.serverCa);
  const clientCa = secret(names.clientCa);
  return new Map<string, ObservedCertificate>([
    [names.serverCa, inspectAuthority(serverCa)],
    [names.clientCa, inspectAuthority(clientCa)],
    [names.serverTls, inspectLeaf(secret(names.serverTls), serverCa, "server", now)],
    [names.replicationTls, inspectLeaf(secret(names.replicationTls), clientCa, "client", now)],
    [names.pooler, inspectLeaf(secret(names.pooler), clientCa, "client", now)],
  ]);
}

async function getOrUndefined<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    if (isKubeError(error, "notFound")) return undefined;
    throw error;
  }
}

function isOrphan(object: KubeObject): boolean {
  return (object.metadata.ownerReferences ?? []).length === 0 && !object.metadata.deletionTimestamp;
}

function byName<T extends KubeObject>(objects: readonly T[]): Map<string, T> {
  return new Map(objects.map((it) => [it.metadata.name ?? "", it]));
}

function sorted<T extends KubeObject>(objects: readonly T[]): T[] {
  return [...objects].sort((a, b) => ((a.metadata.name ?? "") < (b.metadata.name ?? "") ? -1 : 1));
}
