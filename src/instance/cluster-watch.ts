import type { Cluster } from "../api/generated/cluster.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { resources } from "../kube/resources.ts";
import { createStore, type RunnableStore } from "../kube/store.ts";
import type { InstanceContext } from "./instance-context.ts";

/** Keeps the shared copy of the one Cluster current. */
export class ClusterWatch {
  readonly #context: InstanceContext;
  readonly #store: RunnableStore<Cluster>;

  constructor(context: InstanceContext, kube: KubeClient, onChange: () => void) {
    this.#context = context;
    const { namespace, clusterName } = context.settings;
    this.#store = createStore(kube, resources.clusters, {
      logger: context.logger,
      clock: context.clock,
      namespace,
      fieldSelector: `metadata.name=${clusterName}`,
    });
    this.#store.subscribe((event) => {
      // A deleted Cluster leaves PostgreSQL as it is until the pod is ended.
      if (event.type === "deleted") return;
      this.#take(event.object);
      onChange();
    });
  }

  #take(cluster: Cluster): void {
    this.#context.state.cluster = cluster;
  }

  /** Lets the copy see what this process has just written. */
  observeWrite(cluster: Cluster): void {
    this.#store.observeWrite(cluster);
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#store.run(signal);
  }
}
