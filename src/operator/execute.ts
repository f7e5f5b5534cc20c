import { clusterName, clusterNamespace } from "../api/cluster-facts.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { Pod } from "../api/generated/kubernetes.ts";
import { annotations } from "../api/labels.ts";
import { formatRolloutNote } from "../api/rollout-note.ts";
import type { BuildContext } from "../build/context.ts";
import { buildApplicationSecret, buildSuperuserSecret } from "../build/credentials.ts";
import { recordPodSpec } from "../build/instance-pod.ts";
import { applyMergePatch, createMergePatch } from "../build/merge-patch.ts";
import { ownsObject } from "../build/metadata.ts";
import { generatePassword } from "../build/password.ts";
import { resources } from "../kube/resources.ts";
import { actionName, type ClusterAction, type ObjectRef, type PlannedObject } from "../plan/cluster/actions.ts";
import type { RolloutSlot } from "../plan/cluster/observed.ts";
import type { Clock, Random } from "../ports/clock.ts";
import type { EventSink } from "../ports/event-sink.ts";
import {
  isKubeError,
  type KubeApi,
  KubeError,
  type KubeObject,
  type ResourceType,
  type Store,
} from "../ports/kube-api.ts";
import type { Logger } from "../ports/logger.ts";
import type { LifecycleOperation } from "../ports/plugin.ts";
import { executeCertificate } from "./execute-certificate.ts";
import type { Failpoint } from "./failpoint.ts";
import type { ManagerUploads } from "./manager-uploads.ts";
import type { ClusterPlugins } from "./plugins/without-plugins.ts";
import { factsOf, isRefusal, makesSurrounding, NotOwnedError } from "./refusal.ts";
import type { DemotedPrimary } from "./replica-transition.ts";
import { resourceTypeOf } from "./resource-types.ts";
import type { OperatorStores } from "./stores.ts";

export interface ExecutorOptions {
  api: KubeApi;
  stores: OperatorStores;
  events: EventSink;
  clock: Clock;
  random: Random;
  context: BuildContext;
  failpoint: Failpoint;
  /** Whose hooks surround the writes. @default - nobody's */
  plugins?: ClusterPlugins;
  /** Refuses with a conflict when another step was taken after `seenAtMs`; gives the way to give the slot back. */
  takeRolloutSlot(slot: RolloutSlot, seenAtMs: number | undefined): (() => void) | undefined;
  /** Sends instances their manager. @default - nobody does */
  managers?: Pick<ManagerUploads, "begin" | "forget">;
  /** The stopped primary of a cluster that becomes a replica cluster. */
  demoted: Pick<DemotedPrimary, "archivePartialWal">;
}

/** State of one execution: the Cluster as the last write left it. */
interface Run {
  readonly options: ExecutorOptions;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  cluster: Cluster;
}

/**
 * Carries out a plan in order and stops at the first failure; after one that concerns an object around the instances only
 * other such objects are still made, and what was seen is still written down. It decides nothing: every write is conditional on what the plan was made on, and
 * nothing is deleted once the Cluster has changed since.
 */
export async function executeActions(
  options: ExecutorOptions,
  cluster: Cluster,
  actions: readonly ClusterAction[],
  logger: Logger,
  signal: AbortSignal,
): Promise<Cluster> {
  const run: Run = { options, logger, signal, cluster };
  let refusal: unknown;
  for (const action of actions) {
    signal.throwIfAborted();
    if (refusal !== undefined && !makesSurrounding(action)) {
      if (action.kind === "patchStatus") await patchFacts(run, action.patch);
      continue;
    }
    const name = actionName(action);
    logger.debug("Executing action", { action: name, reason: action.reason, ...subjectOf(action) });
    try {
      await executeOne(run, action);
    } catch (error) {
      if (makesSurrounding(action) && isRefusal(error)) {
        refusal ??= error;
        continue;
      }
      const isOptional = (action.kind === "patch" || action.kind === "delete") && action.bestEffort;
      if (!isOptional) throw error;
      logger.warning("Optional action failed", { action: name, reason: action.reason, error });
      if (action.kind === "patch" && action.failureEvent) {
        const message = `${action.reason}: ${error instanceof Error ? error.message : String(error)}`;
        options.events.record(targetOf(run.cluster), { type: "Warning", reason: action.failureEvent, message });
      }
    }
    options.failpoint(name);
  }
  if (refusal !== undefined) throw refusal;
  return run.cluster;
}

async function patchFacts(run: Run, patch: Record<string, unknown>): Promise<void> {
  const facts = factsOf(patch);
  if (Object.keys(facts).length > 0) await patchCluster(run, { status: facts }, "status");
}

async function executeOne(run: Run, action: ClusterAction): Promise<void> {
  switch (action.kind) {
    case "patchStatus":
      return patchCluster(run, { status: action.patch }, "status");
    case "patchCluster":
      return patchCluster(run, action.patch, undefined);
    case "create":
      return create(run, action.object, action.mustOwn);
    case "update":
      return update(run, action.object);
    case "patch":
      return patch(run, action.target, action.patch);
    case "delete":
      return remove(run, action.target, action.propagation);
    case "issueCertificate":
      return executeCertificate({ ...run.options, cluster: run.cluster, signal: run.signal }, action.certificate);
    case "createCredentials": {
      const build = action.user === "app" ? buildApplicationSecret : buildSuperuserSecret;
      const secret = build(run.cluster, generatePassword(run.options.random), run.options.context);
      return create(run, { ...secret }, true);
    }
    case "event":
      run.options.events.record(targetOf(run.cluster), {
        type: action.type,
        reason: action.event,
        message: action.message,
      });
      return;
    case "archivePartialWal":
      return run.options.demoted.archivePartialWal(run.cluster, action.instance, action.wal, run.signal);
    case "takeRolloutSlot":
      return takeRolloutSlot(run, action);
    case "sendManager":
      return run.options.managers?.begin(run.options.stores, run.cluster, action);
    case "forgetManager":
      run.options.managers?.forget(action.target.uid);
      return;
    default:
      action satisfies never;
  }
}

async function takeRolloutSlot(run: Run, action: ClusterAction & { kind: "takeRolloutSlot" }): Promise<void> {
  const { instance, podUid, seenAtMs } = action;
  const cluster = `${clusterNamespace(run.cluster)}/${clusterName(run.cluster)}`;
  const slot = { cluster, instance, podUid, atMs: run.options.clock.now() };
  const giveBack = run.options.takeRolloutSlot(slot, seenAtMs);
  try {
    const noted = { [annotations.lastRollout]: formatRolloutNote(slot) };
    await patchCluster(run, { metadata: { annotations: noted } }, undefined);
  } catch (error) {
    giveBack?.();
    throw error;
  }
}

async function patchCluster(
  run: Run,
  change: Record<string, unknown>,
  subresource: "status" | undefined,
): Promise<void> {
  const { namespace, name, resourceVersion } = run.cluster.metadata;
  const metadata = { ...(change["metadata"] as object | undefined), resourceVersion };
  const written = await run.options.api.patch(
    resources.clusters,
    { namespace: namespace ?? "", name: name ?? "" },
    { type: "merge", body: { ...change, metadata } },
    { signal: run.signal, ...(subresource ? { subresource } : {}) },
  );
  run.options.stores.clusters.observeWrite(written);
  run.cluster = written;
}

async function create(run: Run, object: PlannedObject, mustOwn: boolean): Promise<void> {
  const type = resourceTypeOf(object);
  const { api } = run.options;
  const wanted = await beforeCreate(run, object);
  try {
    observeWrite(run, type, await api.create(type, wanted, { signal: run.signal }));
  } catch (error) {
    if (!isKubeError(error, "alreadyExists")) throw error;
    const { namespace, name } = object.metadata;
    const live = await api.get(type, { namespace: namespace ?? "", name: name ?? "" }, { signal: run.signal });
    if (mustOwn && !ownsObject(run.cluster, live)) {
      const subject = `${object.kind.toLowerCase()} "${name}"`;
      throw new NotOwnedError(
        `refusing to adopt ${subject}: not owned by cluster "${clusterName(run.cluster)}". Remove it, or give the cluster another name`,
      );
    }
    observeWrite(run, type, live);
  }
}

async function update(run: Run, object: PlannedObject): Promise<void> {
  const type = resourceTypeOf(object);
  const wanted = await hook(run, "update", object);
  observeWrite(run, type, await run.options.api.update(type, wanted, { signal: run.signal }));
}

async function patch(run: Run, target: ObjectRef, change: Record<string, unknown>): Promise<void> {
  const type = resourceTypeOf(target);
  const { namespace, name, uid, resourceVersion } = target;
  const pinned = { uid, ...(resourceVersion ? { resourceVersion } : {}) };
  const wanted = await beforePatch(run, type, target, change);
  const metadata = { ...(wanted["metadata"] as object | undefined), ...pinned };
  const body = { ...wanted, metadata };
  const written = await run.options.api.patch(
    type,
    { namespace, name },
    { type: "merge", body },
    { signal: run.signal },
  );
  observeWrite(run, type, written);
}

async function remove(run: Run, target: ObjectRef, propagation: "Foreground" | "Background"): Promise<void> {
  await requireUnchangedCluster(run, target);
  const type = resourceTypeOf(target);
  const { namespace, name, uid, resourceVersion } = target;
  await beforeDelete(run, type, target);
  try {
    await run.options.api.delete(
      type,
      { namespace, name },
      { propagation, uid, ...(resourceVersion ? { resourceVersion } : {}), signal: run.signal },
    );
  } catch (error) {
    if (!isKubeError(error, "notFound")) throw error;
  }
  if (isPrecious(target)) await observeRemoval(run, type, { namespace, name });
}

/** What is on its way out must not count in the next pass, however far behind the watch is. */
async function observeRemoval(
  run: Run,
  type: ResourceType<KubeObject>,
  key: { namespace: string; name: string },
): Promise<void> {
  try {
    observeWrite(run, type, await run.options.api.get(type, key, { signal: run.signal }));
  } catch (error) {
    // Gone already, or not to be read just now: the watch will tell.
    if (!isKubeError(error)) throw error;
  }
}

function isPrecious(target: ObjectRef): boolean {
  return target.kind === "Pod" || target.kind === "PersistentVolumeClaim";
}

/**
 * The reason to delete something may be gone once the Cluster says something else. Instances and their data are worth a
 * fresh read: a watch that has stalled would go on telling the old story.
 */
async function requireUnchangedCluster(run: Run, target: ObjectRef): Promise<void> {
  const { namespace = "", name = "", resourceVersion } = run.cluster.metadata;
  const { api, stores } = run.options;
  const now = isPrecious(target)
    ? await api.get(resources.clusters, { namespace, name }, { signal: run.signal })
    : stores.clusters.get({ namespace, name });
  if (now?.metadata.resourceVersion === resourceVersion) return;
  if (now) stores.clusters.observeWrite(now);
  throw new KubeError(
    `delete ${target.kind} ${target.namespace}/${target.name}: cluster ${name} has changed since this was decided`,
    { kind: "conflict", status: 409 },
  );
}

async function hook<T extends KubeObject>(run: Run, operation: LifecycleOperation, object: T): Promise<T> {
  return (await run.options.plugins?.hook(operation, run.cluster, object)) ?? object;
}

/** An instance's pod is noted down as the plugins evaluate it: that is what later passes compare. */
async function beforeCreate(run: Run, object: PlannedObject): Promise<PlannedObject> {
  const isInstance = object.kind === "Pod" && object.metadata.annotations?.[annotations.podSpec] !== undefined;
  if (!isInstance || !run.options.plugins) return hook(run, "create", object);
  return hook(run, "create", recordPodSpec(await hook(run, "evaluate", object as Pod)));
}

/**
 * Plugins see the object as it would be. Of a pod only the metadata counts: the rest can't be changed. When the plugins are
 * not to be had the change is made without them: it may be the label that leads clients to a new primary.
 */
async function beforePatch(
  run: Run,
  type: ResourceType<KubeObject>,
  target: ObjectRef,
  change: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  const live = run.options.plugins && findInStores(run, type, target);
  if (!live || !run.options.plugins) return change;
  const changed = applyMergePatch({ ...live }, change) as unknown as KubeObject;
  const wanted = await run.options.plugins.hook("patch", run.cluster, changed, { type, optional: true });
  if (wanted === changed) return change;
  if (type.kind !== "Pod") return createMergePatch({ ...live }, { ...wanted });
  return { ...change, metadata: createMergePatch({ ...live.metadata }, { ...wanted.metadata }) };
}

async function beforeDelete(run: Run, type: ResourceType<KubeObject>, target: ObjectRef): Promise<void> {
  const live = run.options.plugins && findInStores(run, type, target);
  if (!live || !run.options.plugins) return;
  const wanted = await run.options.plugins.hook("delete", run.cluster, live, { type });
  if (wanted === live) return;
  const { namespace, name, uid } = target;
  const change = createMergePatch({ ...live }, { ...wanted });
  const body = { ...change, metadata: { ...(change["metadata"] as object | undefined), uid } };
  try {
    await run.options.api.patch(type, { namespace, name }, { type: "merge", body }, { signal: run.signal });
  } catch (error) {
    if (!isKubeError(error, "notFound")) throw error;
  }
}

function findInStores(run: Run, type: ResourceType<KubeObject>, target: ObjectRef): KubeObject | undefined {
  for (const store of Object.values(run.options.stores)) {
    if (store.type.kind !== type.kind || store.type.group !== type.group) continue;
    const found = (store as Store<KubeObject>).get({ namespace: target.namespace, name: target.name });
    if (found?.metadata.uid === target.uid) return found;
  }
  return undefined;
}

/** The next pass must see what this one wrote. */
function observeWrite(run: Run, type: ResourceType<KubeObject>, object: KubeObject): void {
  for (const store of Object.values(run.options.stores)) {
    if (store.type.kind === type.kind && store.type.group === type.group) {
      (store as { observeWrite(object: KubeObject): void }).observeWrite(object);
    }
  }
}

/** What an event about the cluster refers to. */
export function targetOf(cluster: Cluster) {
  const { resourceVersion } = cluster.metadata;
  return {
    apiVersion: cluster.apiVersion,
    kind: cluster.kind,
    namespace: clusterNamespace(cluster),
    name: clusterName(cluster),
    uid: cluster.metadata.uid ?? "",
    ...(resourceVersion ? { resourceVersion } : {}),
  };
}

function subjectOf(action: ClusterAction): Record<string, unknown> {
  switch (action.kind) {
    case "create":
    case "update":
      return { object: action.object.metadata.name };
    case "patch":
    case "delete":
      return { object: action.target.name };
    default:
      return {};
  }
}
