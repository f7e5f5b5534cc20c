import type { Cluster } from "../api/generated/cluster.ts";
import { phases } from "../api/phases.ts";
import { createMergePatch } from "../build/merge-patch.ts";
import { resources } from "../kube/resources.ts";
import { withPhase } from "../plan/cluster/pass.ts";
import { type ClusterPlan, planBeforeStatusCalls, planCluster } from "../plan/cluster/plan-cluster.ts";
import { isKubeError } from "../ports/kube-api.ts";
import type { Logger } from "../ports/logger.ts";
import { type ReconcileResult, TerminalError } from "../runtime/controller.ts";
import type { AdmissionGuard } from "./admission-guard.ts";
import { releaseDeletedCluster } from "./deleted-cluster.ts";
import { type ExecutorOptions, executeActions, NotOwnedError, targetOf } from "./execute.ts";
import { type ClusterObserver, matchAnswers } from "./observe.ts";

export interface ClusterReconcilerOptions extends ExecutorOptions {
  observer: ClusterObserver;
  guard: AdmissionGuard;
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
    const admitted = await admit(options, cluster, logger, signal);
    if (!admitted) return { requeueAfterMs: 0 };
    try {
      return await runPass(options, admitted, logger, signal);
    } catch (error) {
      if (error instanceof NotOwnedError) {
        await reportFailure(options, admitted, error.message, signal);
        return { requeueAfterMs: 10_000 };
      }
      // Somebody else wrote first, and the store will show it: look again at once instead of backing off.
      if (isKubeError(error, "conflict")) return { requeueAfterMs: conflictPauseMs };
      throw error;
    }
  };
}

const conflictPauseMs = 20;

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
  options: ClusterReconcilerOptions,
  cluster: Cluster,
  logger: Logger,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const { observer, clock } = options;
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
  const observed = matchAnswers(polled, await observer.observe(latest, now, signal));
  const plan = planCluster(latest, observed, new Date(now));
  for (const it of observed.instances) {
    if (it.kind === "silent") logger.debug("Instance did not answer", { instance: it.name, reason: it.reason });
  }
  await executeActions(options, latest, plan.actions, logger, signal);
  return conclude(plan, logger);
}

function conclude(plan: ClusterPlan, logger: Logger): ReconcileResult {
  logger.debug("Pass ended", {
    because: plan.because,
    requeueAfterMs: plan.requeueAfterMs,
    actions: plan.actions.length,
  });
  return plan.requeueAfterMs === undefined ? {} : { requeueAfterMs: plan.requeueAfterMs };
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

async function reportFailure(
  options: ClusterReconcilerOptions,
  cluster: Cluster,
  message: string,
  signal: AbortSignal,
): Promise<void> {
  const latest = options.stores.clusters.get(parseKey(keyOf(cluster))) ?? cluster;
  if (latest.status?.phaseReason === message) return;
  options.events.record(targetOf(latest), { type: "Warning", reason: "ObjectConflict", message });
  await writePhase(options, latest, phases.cannotCreateObjects, message, signal);
}

async function writePhase(
  options: ClusterReconcilerOptions,
  cluster: Cluster,
  phase: typeof phases.invalid | typeof phases.cannotCreateObjects,
  reason: string,
  signal: AbortSignal,
): Promise<void> {
  const before = cluster.status ?? {};
  const after = withPhase(before, phase, reason, new Date(options.clock.now()));
  const status = createMergePatch({ ...before }, { ...after });
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
