// The plugins of one cluster during one pass: what they say, and their hooks around every write.
import { enabledPlugins } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import type { PodSpec } from "../../api/generated/kubernetes.ts";
import { parseNodeSerial } from "../../api/markers.ts";
import { buildInstancePod } from "../../build/instance-pod.ts";
import type { PluginStatus } from "../../plan/cluster/plugins.ts";
import type { Logger } from "../../ports/logger.ts";
import { findPluginError, PluginError, type PluginSession } from "../../ports/plugin.ts";
import { runLifecycleHooks } from "../../rpc/calls/lifecycle.ts";
import { collectPluginStatuses, deregisterPlugins } from "../../rpc/calls/operator.ts";
import { buildPluginStatus } from "../../rpc/calls/plugin-status.ts";
import { runReconcilerHooks } from "../../rpc/calls/reconciler.ts";
import type { PluginDirectory } from "./plugin-directory.ts";
import { SpecVerdicts } from "./spec-verdicts.ts";
import { type ClusterPlugins, withoutPlugins } from "./without-plugins.ts";

/** Bound for all that a pass asks of the plugins before it decides, in milliseconds. */
const observeLimitMs = 10_000;

/** What the plugins of one directory accepted, for as long as that is in use. */
const verdicts = new WeakMap<PluginDirectory, SpecVerdicts>();

function verdictsOf(directory: PluginDirectory): SpecVerdicts {
  const known = verdicts.get(directory);
  if (known) return known;
  const made = new SpecVerdicts();
  directory.onClusterGone((uid) => made.forget(uid));
  verdicts.set(directory, made);
  return made;
}

/** Borrows the plugins that the cluster enables, and tells those that left it. */
export async function borrowPlugins(
  directory: PluginDirectory,
  cluster: Cluster,
  signal: AbortSignal,
  logger: Logger,
): Promise<ClusterPlugins> {
  const names = enabledPlugins(cluster);
  const kept = await deregisterLeavers(directory, cluster, names, signal, logger);
  if (names.length === 0) return withoutPlugins(kept);
  try {
    return usePlugins(await directory.load(names, { signal }), kept, verdictsOf(directory), signal);
  } catch (error) {
    const failure = findPluginError(error);
    if (!failure) throw error;
    return failedPlugins(failure);
  }
}

function failedPlugins(failure: PluginError): ClusterPlugins {
  return {
    observe: async () =>
      failure.kind === "unknownPlugin"
        ? { kind: "unknown", plugin: failure.plugin }
        : { kind: "failed", message: failure.message },
    async hook(_operation, _cluster, object, options) {
      if (options?.optional) return object;
      throw failure;
    },
    settle: async () => ({ verdict: { kind: "continue" }, statuses: undefined }),
    release: () => undefined,
  };
}

function usePlugins(
  session: PluginSession,
  kept: readonly PluginStatus[],
  known: SpecVerdicts,
  signal: AbortSignal,
): ClusterPlugins {
  const { plugins } = session;
  const statusesOf = (cluster: Cluster, reported?: ReadonlyMap<string, string>) => [
    ...buildPluginStatus(plugins, cluster.status?.pluginStatus, reported),
    ...kept,
  ];
  return {
    async observe(cluster, pods, context) {
      // Who is primary is decided after this: a plugin that hangs may hold that up for so long and no longer.
      const budget = AbortSignal.any([signal, AbortSignal.timeout(observeLimitMs)]);
      try {
        const verdict = await known.judge(plugins, cluster, budget);
        if (verdict.kind !== "accepted") return { ...verdict, statuses: statusesOf(cluster) };
        const pre = await runReconcilerHooks(plugins, "pre", { cluster, resource: cluster }, { signal: budget });
        const evaluated = new Map<string, PodSpec>();
        for (const pod of pre.kind === "continue" ? pods : []) {
          const serial = parseNodeSerial(pod);
          if (serial === undefined) continue;
          const object = buildInstancePod(cluster, serial, context);
          const call = { operation: "evaluate", cluster, object } as const;
          const { spec } = await runLifecycleHooks(plugins, call, { signal: budget });
          if (spec) evaluated.set(pod.metadata.name ?? "", spec);
        }
        return { kind: "loaded", statuses: statusesOf(cluster), pre, evaluated };
      } catch (error) {
        signal.throwIfAborted();
        if (budget.aborted) {
          const names = plugins.map(({ name }) => name).join(", ");
          return { kind: "failed", message: `no answer of the hooks of ${names} within ${observeLimitMs / 1_000} s` };
        }
        const failure = findPluginError(error);
        if (!failure) throw error;
        return { kind: "failed", message: failure.message };
      }
    },
    hook: (operation, cluster, object, options) =>
      runLifecycleHooks(
        plugins,
        { operation, cluster, object, ...(options?.type ? { type: options.type } : {}) },
        { signal },
      ),
    async settle(cluster) {
      const verdict = await runReconcilerHooks(plugins, "post", { cluster, resource: cluster }, { signal });
      if (verdict.kind === "requeue") return { verdict, statuses: undefined };
      const reported = await collectPluginStatuses(plugins, cluster, { signal });
      for (const [plugin, text] of reported) requireObject(plugin, text);
      return { verdict, statuses: reported.size === 0 ? undefined : statusesOf(cluster, reported) };
    },
    release: () => session.release(),
  };
}

function requireObject(plugin: string, text: string): void {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return;
  const operation = "Operator.SetStatusInCluster";
  const message = `plugin ${plugin}, ${operation}: its status is no JSON object`;
  throw new PluginError(message, { plugin, operation, kind: "protocol" });
}

/**
 * Tells plugins that a cluster does not enable any more, where they offer to hear it. Those that could not be told stay in the
 * status, so that the next pass tries again; one that is not installed any more has nothing to hear.
 */
async function deregisterLeavers(
  directory: PluginDirectory,
  cluster: Cluster,
  enabled: readonly string[],
  signal: AbortSignal,
  logger: Logger,
): Promise<PluginStatus[]> {
  const kept: PluginStatus[] = [];
  for (const entry of cluster.status?.pluginStatus ?? []) {
    if (enabled.includes(entry.name) || !entry.operatorCapabilities?.includes("TYPE_DEREGISTER")) continue;
    try {
      const session = await directory.load([entry.name], { signal });
      try {
        await deregisterPlugins(session.plugins, cluster, { signal });
      } finally {
        session.release();
      }
    } catch (error) {
      const failure = findPluginError(error);
      if (!failure) throw error;
      if (failure.kind === "unknownPlugin") continue;
      logger.warning("A plugin could not be told that the cluster left it", { pluginName: entry.name, error });
      kept.push(entry);
    }
  }
  return kept;
}
