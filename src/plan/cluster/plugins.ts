import { enabledPlugins } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import type { PodSpec } from "../../api/generated/kubernetes.ts";
import { phases } from "../../api/phases.ts";
import { flushStatus, type Pass, recordEvent, setPhase, type Wait } from "./pass.ts";

/** One entry of `status.pluginStatus`. */
export type PluginStatus = NonNullable<NonNullable<Cluster["status"]>["pluginStatus"]>[number];

/** What the hooks before or after a pass decided; `plugin` names who ended the loop. */
export type HookVerdict =
  | { kind: "continue" }
  | { kind: "requeue"; plugin: string; afterSeconds: number }
  | { kind: "terminate"; plugin: string };

/** What is known of the cluster's plugins in this pass. */
export type ObservedPlugins =
  /** The cluster enables none; `statuses` holds those that could not be told yet that it left them. */
  | { kind: "none"; statuses: readonly PluginStatus[] }
  /** One is not registered with the operator. */
  | { kind: "unknown"; plugin: string }
  /** One could not be loaded, or failed at its hook. */
  | { kind: "failed"; message: string }
  /** The definition came past the webhooks, and they would have changed or refused it. */
  | { kind: "changed"; statuses: readonly PluginStatus[]; patch: Record<string, unknown> }
  | { kind: "refused"; statuses: readonly PluginStatus[]; errors: readonly string[] }
  | {
      kind: "loaded";
      statuses: readonly PluginStatus[];
      pre: HookVerdict;
      /** Specs of the instance pods as the plugins would have them now, by pod name. */
      evaluated: ReadonlyMap<string, PodSpec>;
    };

/** Pause before an unknown plugin is looked for again, and after a failure of one, in milliseconds (reference: CNPG-I §2.6). */
export const unknownPluginPauseMs = 10_000;
export const pluginFailurePauseMs = 15_000;

/**
 * Publishes the plugins in the status; the pass ends where one is not to be had. Who is primary was decided before: a broken plugin
 * stands in nobody's way there.
 */
export function planPlugins(pass: Pass): Wait | null {
  const { plugins } = pass.observed;
  const [first] = enabledPlugins(pass.cluster);
  if (!plugins || plugins.kind === "none") {
    if (first !== undefined) return refuseUnknown(pass, first);
    publish(pass, plugins?.statuses ?? []);
    return null;
  }
  switch (plugins.kind) {
    case "unknown":
      return refuseUnknown(pass, plugins.plugin);
    case "failed":
      setPhase(pass, phases.pluginFailure, plugins.message);
      return { requeueAfterMs: pluginFailurePauseMs, because: plugins.message };
    case "changed": {
      publish(pass, plugins.statuses);
      const because = "its plugins complete the definition";
      pass.actions.push({ kind: "patchCluster", patch: plugins.patch, reason: because });
      return { requeueAfterMs: 1_000, because };
    }
    case "refused":
      publish(pass, plugins.statuses);
      return refuseDefinition(pass, plugins.errors);
    case "loaded":
      publish(pass, plugins.statuses);
      return null;
  }
}

/** How soon plugins that refused a definition are asked again, in milliseconds: another version of them may accept it. */
const refusedPauseMs = 30_000;

function refuseDefinition(pass: Pass, errors: readonly string[]): Wait {
  const because = `the plugins of the cluster refuse its definition: ${errors.join("; ")}`;
  const isNews = pass.status.phase !== phases.invalid || pass.status.phaseReason !== because;
  setPhase(pass, phases.invalid, because);
  if (isNews) recordEvent(pass, "Warning", "InvalidClusterDefinition", errors.join("; ").slice(0, 1_000));
  return { requeueAfterMs: refusedPauseMs, because };
}

/** Lets the hooks before a pass end it; what surrounds the instances is there by then. */
export function planPluginHooks(pass: Pass): Wait | null {
  const { plugins } = pass.observed;
  return plugins?.kind === "loaded" ? stopForHooks(plugins.pre) : null;
}

/** Reason of the phase of a cluster whose plugin is not registered. */
export function unknownPluginReason(name: string): string {
  return (
    `Unknown plugin: '${name}'. This may be caused by the plugin not being loaded correctly by the operator. ` +
    "Check the operator and plugin logs for errors"
  );
}

function refuseUnknown(pass: Pass, name: string): Wait {
  const because = unknownPluginReason(name);
  setPhase(pass, phases.unknownPlugin, because);
  return { requeueAfterMs: unknownPluginPauseMs, because };
}

function publish(pass: Pass, statuses: readonly PluginStatus[]): void {
  if (statuses.length === 0 && !pass.status.pluginStatus) return;
  const { pluginStatus: _, ...rest } = pass.status;
  pass.status = statuses.length === 0 ? rest : { ...rest, pluginStatus: [...statuses] };
  flushStatus(pass, "the plugins in use");
}

/** A hook that asks to come back at once means: as soon as a second has passed. */
function stopForHooks(verdict: HookVerdict): Wait | null {
  switch (verdict.kind) {
    case "continue":
      return null;
    case "terminate":
      return { because: `plugin ${verdict.plugin} ended the pass` };
    case "requeue":
      return { requeueAfterMs: hookPauseMs(verdict), because: `plugin ${verdict.plugin} asked to wait` };
  }
}

/** How long a hook's wish to come back lasts; one that names no time means as soon as a second has passed. */
export function hookPauseMs(verdict: HookVerdict & { kind: "requeue" }): number {
  return verdict.afterSeconds > 0 ? verdict.afterSeconds * 1_000 : 1_000;
}

/** The spec that the pod is compared with: as the plugins would have it, or as built; `undefined` = not known now. */
export function targetPodSpec(pass: Pass, name: string, built: PodSpec | undefined): PodSpec | undefined {
  const { plugins } = pass.observed;
  if (plugins?.kind !== "loaded") return enabledPlugins(pass.cluster).length === 0 ? built : undefined;
  return plugins.evaluated.get(name);
}
