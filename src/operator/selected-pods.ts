import type { Cluster } from "../api/generated/cluster.ts";
import type { Pod } from "../api/generated/kubernetes.ts";
import { sameJson } from "../build/same-json.ts";
import type { ListWatch } from "../kube/kube-client.ts";
import { resources } from "../kube/resources.ts";
import { matchesLabelSelector } from "../kube/selectors.ts";
import { createStore } from "../kube/store.ts";
import type { Clock } from "../ports/clock.ts";
import type { Store, StoreEvent } from "../ports/kube-api.ts";
import type { Logger } from "../ports/logger.ts";
import type { Runnable } from "../runtime/runnable.ts";
import { keyOf } from "./cluster-controller.ts";
import { formatSelector } from "./label-selector.ts";
import { untilAborted } from "./until-aborted.ts";

export interface SelectedPodsOptions {
  source: ListWatch;
  clusters: Store<Cluster>;
  clock: Clock;
  logger: Logger;
  enqueue(key: string): void;
}

/**
 * Follows the pods that clusters select by `podSelectorRefs`, and wakes those clusters when one comes, goes or changes its
 * labels or addresses. Pods of others are watched only in namespaces where a cluster asks for it.
 */
export function createSelectedPods(options: SelectedPodsOptions): Runnable {
  return {
    name: "selected pods",
    async run(stop) {
      const watched = new Map<string, { end: AbortController; running: Promise<void> }>();
      const follow = (namespace: string) => {
        const isWanted = askingIn(options, namespace).length > 0;
        const known = watched.get(namespace);
        if (isWanted && !known) {
          const end = new AbortController();
          watched.set(namespace, { end, running: watchPods(options, namespace, AbortSignal.any([stop, end.signal])) });
        }
        if (!isWanted && known) {
          known.end.abort();
          watched.delete(namespace);
        }
      };
      const unsubscribe = options.clusters.subscribe(({ object }) => follow(object.metadata.namespace ?? ""));
      for (const { metadata } of options.clusters.list()) follow(metadata.namespace ?? "");
      await untilAborted(stop);
      unsubscribe();
      await Promise.all([...watched.values()].map((it) => it.running));
    },
  };
}

function askingIn({ clusters }: SelectedPodsOptions, namespace: string): Cluster[] {
  return clusters.list(namespace).filter((it) => (it.spec.podSelectorRefs ?? []).length > 0);
}

async function watchPods(options: SelectedPodsOptions, namespace: string, signal: AbortSignal): Promise<void> {
  const { source, clock, logger, enqueue } = options;
  const pods = createStore(source, resources.pods, { clock, logger, namespace, transform: slimPod });
  const unsubscribe = pods.subscribe((event) => {
    if (event.type === "updated" && event.previous && !isNews(event.previous, event.object)) return;
    for (const cluster of askingIn(options, namespace)) if (concerns(cluster, event)) enqueue(keyOf(cluster));
  });
  await pods.run(signal);
  unsubscribe();
}

/** Of pods that are not ours only what is looked at stays in memory. */
function slimPod({ apiVersion, kind, metadata, status }: Pod): Pod {
  const { name, namespace, uid, resourceVersion, labels, deletionTimestamp } = metadata;
  const known = { name, namespace, uid, resourceVersion, labels, deletionTimestamp };
  return { apiVersion, kind, metadata: known, status: { podIPs: status?.podIPs } } as Pod;
}

function isNews(before: Pod, after: Pod): boolean {
  const told = ({ metadata, status }: Pod) => ({
    labels: metadata.labels ?? {},
    ips: (status?.podIPs ?? []).map((it) => it.ip ?? "").join(),
    leaves: metadata.deletionTimestamp !== undefined,
  });
  return !sameJson(told(before), told(after));
}

function concerns(cluster: Cluster, event: StoreEvent<Pod>): boolean {
  const states = event.type === "updated" && event.previous ? [event.previous, event.object] : [event.object];
  return (cluster.spec.podSelectorRefs ?? []).some(({ selector }) => {
    const text = formatSelector(selector);
    return text !== undefined && states.some((it) => matchesLabelSelector(text, it.metadata.labels));
  });
}
