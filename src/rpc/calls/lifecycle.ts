import type { KubeObject, ResourceType } from "../../ports/kube-api.ts";
import { type LifecycleOperation, type Plugin, type PluginCallOptions, PluginError } from "../../ports/plugin.ts";
import { applyLifecyclePatch } from "../lifecycle-patch.ts";
import { PatchError } from "../patch-error.ts";
import { encodeCluster } from "../wire/document.ts";

export interface LifecycleCall<T extends KubeObject> {
  operation: LifecycleOperation;
  cluster: object;
  object: T;
  /** What the object is, where it does not say so itself: items of the API server's lists have no apiVersion and kind. */
  type?: Pick<ResourceType<T>, "group" | "version" | "kind">;
}

/**
 * Passes the object through the hooks of all plugins that want it, each seeing what the one before it made. Gives back the
 * same object when nobody changed it; any failure means that the write must not be done.
 */
export async function runLifecycleHooks<T extends KubeObject>(
  plugins: readonly Plugin[],
  call: LifecycleCall<T>,
  options?: PluginCallOptions,
): Promise<T> {
  const named = withType(call.object, call.type);
  const interested = plugins.filter((plugin) => wantsHook(plugin, named, call.operation));
  if (interested.length === 0) return call.object;
  // One text of the Cluster serves all of them.
  const cluster = encodeCluster(call.cluster);
  let object = named;
  for (const plugin of interested) {
    const patch = await plugin.lifecycle.hook({ operation: call.operation, cluster, object }, options);
    object = applyPatchOf(plugin, "OperatorLifecycle.LifecycleHook", object, patch);
  }
  return object === named ? call.object : object;
}

function withType<T extends KubeObject>(object: T, type: LifecycleCall<T>["type"]): T {
  if (!type || (object.apiVersion && object.kind)) return object;
  const apiVersion = type.group === "" ? type.version : `${type.group}/${type.version}`;
  return { ...object, apiVersion, kind: type.kind };
}

/** Whether the plugin asked for hooks on this kind and operation. */
export function wantsHook(plugin: Plugin, object: KubeObject, operation: LifecycleOperation): boolean {
  const [first = "", second] = (object.apiVersion ?? "").split("/");
  const group = second === undefined ? "" : first;
  return plugin.capabilities.lifecycle.some(
    (wanted) => wanted.group === group && wanted.kind === object.kind && wanted.operations.includes(operation),
  );
}

/** Applies a plugin's patch; one that does not fit is the plugin's failure. */
export function applyPatchOf<T extends object>(plugin: Plugin, operation: string, object: T, patch: Uint8Array): T {
  try {
    return applyLifecyclePatch(object, patch);
  } catch (cause) {
    if (!(cause instanceof PatchError)) throw cause;
    throw new PluginError(`plugin ${plugin.name}, ${operation}: ${cause.message}`, {
      plugin: plugin.name,
      operation,
      kind: "protocol",
      cause,
    });
  }
}
