import { usesDefaultQueries } from "../api/cluster-facts.ts";
import { annotations } from "../api/labels.ts";
import { defaultMonitoringName } from "../api/names.ts";
import type { BuildContext } from "../build/context.ts";
import { resources } from "../kube/resources.ts";
import { isKubeError, type KubeApi, type KubeObject, type ResourceType } from "../ports/kube-api.ts";
import type { Logger } from "../ports/logger.ts";
import type { ReconcileResult } from "../runtime/controller.ts";
import type { OperatorStores } from "./stores.ts";

/** An object that means something only to the instances of one cluster. */
export interface Dependent extends KubeObject {
  spec: { cluster: { name: string } };
  status?: { message?: string };
}

const message = "cluster resource has been deleted, skipping reconciliation";

/** The kinds that instances put a finalizer on. */
export const dependents: readonly { type: ResourceType<Dependent>; finalizer: string }[] = [
  { type: resources.databases as ResourceType<Dependent>, finalizer: "cnpg.io/deleteDatabase" },
  { type: resources.publications as ResourceType<Dependent>, finalizer: "cnpg.io/deletePublication" },
  { type: resources.subscriptions as ResourceType<Dependent>, finalizer: "cnpg.io/deleteSubscription" },
  { type: resources.databaseRoles as ResourceType<Dependent>, finalizer: "cnpg.io/deleteRole" },
];

export interface DeletedClusterOptions {
  api: KubeApi;
  stores: OperatorStores;
  context: BuildContext;
}

/** Somebody wrote an object while it was being let go: how soon it is looked at again, in milliseconds. */
const conflictPauseMs = 1_000;

/**
 * Lets go of what outlives a cluster: the finalizers of objects that only its instances could have removed, and the copy of
 * the default queries once no cluster of the namespace uses it. Everything else goes by garbage collection. What cannot be
 * let go just now keeps nothing else from it.
 */
export async function releaseDeletedCluster(
  options: DeletedClusterOptions,
  key: { namespace: string; name: string },
  logger: Logger,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  let isContested = false;
  for (const { type, finalizer } of dependents) {
    const all = await options.api.list(type, { namespace: key.namespace, signal });
    for (const object of all.filter((it) => it.spec.cluster.name === key.name && wasTakenUp(it, finalizer))) {
      const told = { kind: type.kind, object: object.metadata.name };
      try {
        await release(options.api, type, object, finalizer, signal);
        logger.info("Released an object of a deleted cluster", told);
      } catch (error) {
        if (isKubeError(error, "notFound")) continue;
        if (!isKubeError(error, "conflict")) throw error;
        logger.debug("An object of a deleted cluster has just changed", told);
        isContested = true;
      }
    }
  }
  await removeUnusedQueries(options, key, signal);
  return isContested ? { requeueAfterMs: conflictPauseMs } : {};
}

/** Whether an instance has ever dealt with an object: one that comes before its cluster is none of a deleted cluster's. */
function wasTakenUp({ metadata, status }: Dependent, finalizer: string): boolean {
  return status !== undefined || (metadata.finalizers ?? []).includes(finalizer);
}

async function release(
  api: KubeApi,
  type: ResourceType<Dependent>,
  object: Dependent,
  finalizer: string,
  signal: AbortSignal,
): Promise<void> {
  const key = { namespace: object.metadata.namespace ?? "", name: object.metadata.name ?? "" };
  let current = object;
  if (object.status?.message !== message) {
    const body = {
      metadata: { resourceVersion: object.metadata.resourceVersion },
      status: { applied: false, message, observedGeneration: 0 },
    };
    current = await api.patch(type, key, { type: "merge", body }, { subresource: "status", signal });
  }
  const finalizers = current.metadata.finalizers ?? [];
  if (!finalizers.includes(finalizer)) return;
  const metadata = {
    resourceVersion: current.metadata.resourceVersion,
    finalizers: finalizers.filter((it) => it !== finalizer),
  };
  await api.patch(type, key, { type: "merge", body: { metadata } }, { signal });
}

/** Removes the copy of the default queries from a namespace in which no cluster uses it; `name` is of one that is going. */
export async function removeUnusedQueries(
  { api, stores, context }: DeletedClusterOptions,
  { namespace, name }: { namespace: string; name?: string },
  signal: AbortSignal,
): Promise<void> {
  if (namespace === context.operatorNamespace) return;
  const others = stores.clusters
    .list(namespace)
    .filter((it) => it.metadata.name !== name && !it.metadata.deletionTimestamp);
  if (others.some(usesDefaultQueries)) return;
  const key = { namespace, name: defaultMonitoringName };
  const isOurs = (object: KubeObject | undefined) =>
    object?.metadata.annotations?.[annotations.operatorVersion] !== undefined;
  if (context.monitoringQueriesConfigMap && isOurs(stores.configMaps.get(key))) {
    await ignoreNotFound(api.delete(resources.configMaps, key, { signal }));
  }
  if (context.monitoringQueriesSecret && isOurs(stores.secrets.get(key))) {
    await ignoreNotFound(api.delete(resources.secrets, key, { signal }));
  }
}

async function ignoreNotFound(operation: Promise<void>): Promise<void> {
  try {
    await operation;
  } catch (error) {
    if (!isKubeError(error, "notFound")) throw error;
  }
}
