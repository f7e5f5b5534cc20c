// What a pass needs of plugins, and the answer for the many clusters that use none; it brings no gRPC library.
import { enabledPlugins } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import type { Pod } from "../../api/generated/kubernetes.ts";
import type { BuildContext } from "../../build/context.ts";
import type { HookVerdict, ObservedPlugins, PluginStatus } from "../../plan/cluster/plugins.ts";
import type { KubeObject, ResourceType } from "../../ports/kube-api.ts";
import type { LifecycleOperation } from "../../ports/plugin.ts";

/** One cluster's plugins on loan for one pass. */
export interface ClusterPlugins {
  /** Asks the plugins for what a plan has to know; a failure is a value. */
  observe(cluster: Cluster, pods: readonly Pod[], context: BuildContext): Promise<ObservedPlugins>;
  /**
   * The object as the plugins want it written. Throws a PluginError, and then the write must not be done. Without plugins,
   * and where the plugins could not be loaded and `optional` is set, it is the object itself.
   */
  hook<T extends KubeObject>(
    operation: LifecycleOperation,
    cluster: Cluster,
    object: T,
    options?: { type?: ResourceType<T>; optional?: boolean },
  ): Promise<T>;
  /** The hooks after a pass that had nothing left to do. */
  settle(cluster: Cluster): Promise<{ verdict: HookVerdict; statuses: readonly PluginStatus[] | undefined }>;
  release(): void;
}

/** Of a cluster that enables none. */
export function withoutPlugins(statuses: readonly PluginStatus[] = []): ClusterPlugins {
  return {
    observe: async () => ({ kind: "none", statuses }),
    hook: async (_operation, _cluster, object) => object,
    settle: async () => ({ verdict: { kind: "continue" }, statuses: undefined }),
    release: () => undefined,
  };
}

/** Whether plugins have anything to do with the cluster, also such as it has left. */
export function concernsPlugins(cluster: Cluster): boolean {
  return enabledPlugins(cluster).length > 0 || (cluster.status?.pluginStatus ?? []).length > 0;
}
