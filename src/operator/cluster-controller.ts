import type { Cluster } from "../api/generated/cluster.ts";
import { type Phase, phases } from "../api/phases.ts";
import { createMergePatch } from "../build/merge-patch.ts";
import { resources } from "../kube/resources.ts";
import { keepWalStorage } from "../plan/cluster/kept-volumes.ts";
import { withPhase } from "../plan/cluster/pass.ts";
import { type ClusterPlan, planBeforeStatusCalls, planCluster } from "../plan/cluster/plan-cluster.ts";
import {
  hookPauseMs,
  pluginFailurePauseMs,
  unknownPluginPauseMs,
  unknownPluginReason,
} from "../plan/cluster/plugins.ts";
import { isKubeError } from "../ports/kube-api.ts";
import type { Logger } from "../ports/logger.ts";
import { findPluginError, type PluginError } from "../ports/plugin.ts";
import { type ReconcileResult, TerminalError } from "../runtime/controller.ts";
import type { AdmissionGuard } from "./admission-guard.ts";
import { releaseDeletedCluster } from "./deleted-cluster.ts";
import { type ExecutorOptions, executeActions, targetOf } from "./execute.ts";
import { type ClusterObserver, matchAnswers } from "./observe.ts";
import type { ClusterPlugins } from "./plugins/without-plugins.ts";
import { isRefusal, NotOwnedError } from "./refusal.ts";
import type { DemotedPrimary } from "./replica-transition.ts";

export interface ClusterReconcilerOptions extends ExecutorOptions {
  observer: ClusterObserver;
  /** The stopped primary of a cluster that becomes a replica cluster. */
  demoted: DemotedPrimary;
  guard: AdmissionGuard;
  /** Borrows the cluster's plugins for one pass. */
  borrowPlugins(cluster: Cluster, signal: AbortSignal, logger: Logger): Promise<ClusterPlugins>;
}

/** One pass over one cluster: observe, plan, execute. */
export type ClusterReconciler = (
  key: string,
  signal: AbortSignal,
  context: { logger: Logger },
) => Promise<ReconcileResult>;

export function createClusterReconciler(options: ClusterReconcilerOptions): ClusterReconciler {
  return async (key, signal, { logger }) => {
    const objectKey = parseKey(key);
    const cluster = options.stores.clusters.get(objectKey);
    if (!cluster && (await isUnseen(options, objectKey, signal))) return { requeueAfterMs: conflictPauseMs };
    if (!cluster || cluster.metadata.deletionTimestamp) {
      return releaseDeletedCluster(options, objectKey, logger, signal);
    }
    const admitted = await admitLatest(options, cluster, logger, signal);
    if (!admitted) return { requeueAfterMs: conflictPauseMs };
    const plugins = await options.borrowPlugins(admitted, signal, logger);
    try {
      return await runPass({ ...options, plugins }, admitted, logger, signal);
    } catch (error) {
      const pluginFailure = findPluginError(error);
      if (pluginFailure) {
        logger.error("A plugin failed", { error });
        return await reportPluginFailure(options, admitted, pluginFailure, signal);
      }
      // What is in the way is for a person to remove or to allow: another's object, a quota, a field of a template.
      if (isRefusal(error)) {
        logger.error("An object of the cluster could not be written", { error });
        const event = error instanceof NotOwnedError ? "ObjectConflict" : "ObjectRefused";
        await reportConflict(options, admitted, error.message, event, signal);
        return { requeueAfterMs: refusalPauseMs };
      }
      // Somebody else wrote first, and the store will show it: look again at once instead of backing off.
      if (isKubeError(error, "conflict")) return { requeueAfterMs: conflictPauseMs };
      throw error;
    } finally {
      plugins.release();
    }
  };
}

const conflictPauseMs = 20;
/** How soon a refused write is tried again: no event tells that a quota has grown, in milliseconds. */
const refusalPauseMs = 10_000;

/** Whether a cluster exists that the store does not show yet: what belongs to it must not be let go. */
async function isUnseen(
  { api, stores }: ClusterReconcilerOptions,
  key: { namespace: string; name: string },
  signal: AbortSignal,
): Promise<boolean> {
  try {
    stores.clusters.observeWrite(await api.get(resources.clusters, key, { signal }));
    return true;
  } catch (error) {
    if (isKubeError(error, "notFound")) return false;
    throw error;
  }
}

async function runPass(
  options: ClusterReconcilerOptions & { plugins: ClusterPlugins },
  cluster: Cluster,
  logger: Logger,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const { observer, clock, plugins } = options;
  const before = await observer.observe(cluster, clock.now(), signal);
  const early = planBeforeStatusCalls(cluster, before, new Date(clock.now()));
  if (early.complete) {
    await executeActions(options, cluster, early.actions, logger, signal);
    return conclude(early, logger);
  }
  // A new primary gets its traffic while the instances are still being asked.
  const [polled, afterEarly] = await Promise.all([
    observer.poll(cluster, signal),
    executeActions(options, cluster, early.actions, logger, signal),
  ]);
  const now = clock.now();
  const latest = options.stores.clusters.get(parseKey(keyOf(cluster))) ?? afterEarly;
  const seen = matchAnswers(polled, await observer.observe(latest, now, signal));
  const controlData = await options.demoted.observe(latest, signal);
  const observed = {
    ...seen,
    ...(controlData ? { controlData } : {}),
    plugins: await plugins.observe(keepWalStorage(latest, seen.volumes), seen.pods, options.context),
  };
  const plan = planCluster(latest, observed, new Date(now));
  for (const it of observed.instances) {
    if (it.kind === "silent") logger.debug("Instance did not answer", { instance: it.name, reason: it.reason });
  }
  const written = await executeActions(options, latest, plan.actions, logger, signal);
  const result = conclude(plan, logger);
  return plan.settled ? await settle(options, written, result, signal) : result;
}

/** How soon plugins that report a status are asked for the next one, in milliseconds (reference: CNPG-I §3.6). */
const pluginStatusPauseMs = 5_000;

/** Lets the plugins have the last word on a pass that found everything in order. */
async function settle(
  options: ClusterReconcilerOptions & { plugins: ClusterPlugins },
  cluster: Cluster,
  result: ReconcileResult,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const { verdict, statuses } = await options.plugins.settle(cluster);
  if (verdict.kind === "requeue") return { requeueAfterMs: hookPauseMs(verdict) };
  if (!statuses) return result;
  await patchStatus(options, cluster, { ...cluster.status, pluginStatus: [...statuses] }, signal);
  return { requeueAfterMs: pluginStatusPauseMs };
}

function conclude(plan: ClusterPlan, logger: Logger): ReconcileResult {
  logger.debug("Pass ended", {
    because: plan.because,
    requeueAfterMs: plan.requeueAfterMs,
    actions: plan.actions.length,
  });
  return plan.requeueAfterMs === undefined ? {} : { requeueAfterMs: plan.requeueAfterMs };
}

/** Like `admit`; `undefined` also when the cluster was written meanwhile, which the store is about to show. */
async function admitLatest(
  options: ClusterReconcilerOptions,
  cluster: Cluster,
  logger: Logger,
  signal: AbortSignal,
): Promise<Cluster | undefined> {
  try {
    return await admit(options, cluster, logger, signal);
  } catch (error) {
    if (isKubeError(error, "conflict")) return undefined;
    throw error;
  }
}

/** The webhooks' rules hold without webhooks too. `undefined` = defaults were written, the pass starts anew. */
async function admit(
  options: ClusterReconcilerOptions,
  cluster: Cluster,
  logger: Logger,
  signal: AbortSignal,
): Promise<Cluster | undefined> {
  const verdict = options.guard.check(cluster);
  switch (verdict.kind) {
    case "admitted":
      return verdict.cluster;
    case "defaulted": {
      logger.info("Writing defaults of a cluster that came without them");
      options.stores.clusters.observeWrite(await options.api.update(resources.clusters, verdict.cluster, { signal }));
      return undefined;
    }
    case "rejected": {
      logger.error("Cluster definition is not valid", { errors: verdict.errors });
      await reportInvalid(options, cluster, verdict, signal);
      throw new TerminalError(verdict.reason);
    }
  }
}

async function reportInvalid(
  options: ClusterReconcilerOptions,
  cluster: Cluster,
  verdict: { reason: string; errors: readonly string[] },
  signal: AbortSignal,
): Promise<void> {
  if (cluster.status?.phase === phases.invalid && cluster.status.phaseReason === verdict.reason) return;
  const message = verdict.errors.join("; ").slice(0, 1_000);
  options.events.record(targetOf(cluster), { type: "Warning", reason: "InvalidClusterDefinition", message });
  await writePhase(options, cluster, phases.invalid, verdict.reason, signal);
}

async function reportPluginFailure(
  options: ClusterReconcilerOptions,
  cluster: Cluster,
  { kind, plugin, message }: PluginError,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const isUnknown = kind === "unknownPlugin";
  const [phase, reason] = isUnknown
    ? [phases.unknownPlugin, unknownPluginReason(plugin)]
    : [phases.pluginFailure, message];
  await reportPhase(options, cluster, phase, reason, signal);
  return { requeueAfterMs: isUnknown ? unknownPluginPauseMs : pluginFailurePauseMs };
}

async function reportConflict(
  options: ClusterReconcilerOptions,
  cluster: Cluster,
  message: string,
  reason: "ObjectConflict" | "ObjectRefused",
  signal: AbortSignal,
): Promise<void> {
  const written = await reportPhase(options, cluster, phases.cannotCreateObjects, message, signal);
  if (written) options.events.record(targetOf(cluster), { type: "Warning", reason, message });
}

/** Writes the phase unless it is there already; tells whether it did. */
async function reportPhase(
  options: ClusterReconcilerOptions,
  cluster: Cluster,
  phase: Phase,
  message: string,
  signal: AbortSignal,
): Promise<boolean> {
  const latest = options.stores.clusters.get(parseKey(keyOf(cluster))) ?? cluster;
  if (latest.status?.phase === phase && latest.status.phaseReason === message) return false;
  await writePhase(options, latest, phase, message, signal);
  return true;
}

async function writePhase(
  options: ClusterReconcilerOptions,
  cluster: Cluster,
  phase: Phase,
  reason: string,
  signal: AbortSignal,
): Promise<void> {
  const after = withPhase(cluster.status ?? {}, phase, reason, new Date(options.clock.now()));
  await patchStatus(options, cluster, after, signal);
}

async function patchStatus(
  options: ClusterReconcilerOptions,
  cluster: Cluster,
  after: NonNullable<Cluster["status"]>,
  signal: AbortSignal,
): Promise<void> {
  const status = createMergePatch({ ...cluster.status }, { ...after });
  if (Object.keys(status).length === 0) return;
  const { namespace, name, resourceVersion } = cluster.metadata;
  const written = await options.api.patch(
    resources.clusters,
    { namespace: namespace ?? "", name: name ?? "" },
    { type: "merge", body: { metadata: { resourceVersion }, status } },
    { subresource: "status", signal },
  );
  options.stores.clusters.observeWrite(written);
}

function parseKey(key: string): { namespace: string; name: string } {
  const [namespace = "", name = ""] = key.split("/");
  return { namespace, name };
}

/** Key of a cluster in the work queue. */
export function keyOf(object: { metadata: { namespace?: string; name?: string } }): string {
  return `${object.metadata.namespace ?? ""}/${object.metadata.name ?? ""}`;
}
