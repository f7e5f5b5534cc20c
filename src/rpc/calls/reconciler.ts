import type { KubeObject } from "../../ports/kube-api.ts";
import type { Plugin, PluginCallOptions } from "../../ports/plugin.ts";
import { encodeCluster } from "../wire/document.ts";

/** What the hooks decided; `plugin` names who ended the loop. */
export type HookDecision =
  | { kind: "continue" }
  | { kind: "requeue"; plugin: string; afterSeconds: number }
  | { kind: "terminate"; plugin: string };

const kinds: Record<string, string> = { Cluster: "KIND_CLUSTER", Backup: "KIND_BACKUP" };

/** Runs the hooks of one stage in the order of the plugins; the first that does not go on skips the rest. */
export async function runReconcilerHooks(
  plugins: readonly Plugin[],
  stage: "pre" | "post",
  objects: { cluster: object; resource: KubeObject },
  options?: PluginCallOptions,
): Promise<HookDecision> {
  const capability = kinds[objects.resource.kind ?? ""];
  const interested = plugins.filter(({ capabilities }) => capability && capabilities.reconciler.includes(capability));
  if (interested.length === 0) return { kind: "continue" };
  const cluster = encodeCluster(objects.cluster);
  const resource = objects.resource.kind === "Cluster" ? cluster : objects.resource;
  for (const plugin of interested) {
    const { behavior, requeueAfterSeconds } = await plugin.reconciler[stage]({ cluster, resource }, options);
    if (behavior === "requeue") return { kind: "requeue", plugin: plugin.name, afterSeconds: requeueAfterSeconds };
    if (behavior === "terminate") return { kind: "terminate", plugin: plugin.name };
  }
  return { kind: "continue" };
}
