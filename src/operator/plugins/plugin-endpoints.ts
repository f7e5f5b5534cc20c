import type { EndpointSlice } from "../../api/generated/kubernetes.ts";
import type { ListWatch } from "../../kube/kube-client.ts";
import { resources } from "../../kube/resources.ts";
import { createStore } from "../../kube/store.ts";
import type { Clock } from "../../ports/clock.ts";
import type { StoreEvent } from "../../ports/kube-api.ts";
import type { Logger } from "../../ports/logger.ts";
import type { Runnable } from "../../runtime/runnable.ts";

const serviceLabel = "kubernetes.io/service-name";

/**
 * Tells when other pods come to serve a Service of the operator's namespace: behind a plugin's Service there may be another version
 * of it then (reference: CNPG-I §2.2).
 */
export function followEndpoints(options: {
  source: ListWatch;
  clock: Clock;
  logger: Logger;
  namespace: string;
  /** Called with the name of the Service. */
  onChange(service: string): void;
}): Runnable {
  const { source, clock, logger, namespace } = options;
  const store = createStore(source, resources.endpointSlices, {
    clock,
    logger,
    namespace,
    labelSelector: serviceLabel,
  });
  return {
    name: "plugin endpoints",
    async run(stop) {
      const filling = store.run(stop);
      // What is there at the start is no news.
      const isFilled = await store.synced(stop).then(
        () => true,
        () => false,
      );
      const unsubscribe = isFilled
        ? store.subscribe((event) => {
            const service = event.object.metadata.labels?.[serviceLabel];
            if (service && isNews(event)) options.onChange(service);
          })
        : undefined;
      await filling;
      unsubscribe?.();
    },
  };
}

/** Whether other pods are ready than before; topology and the like do not matter. */
function isNews(event: StoreEvent<EndpointSlice>): boolean {
  if (event.type !== "updated") return true;
  return !event.previous || readyOf(event.previous) !== readyOf(event.object);
}

function readyOf({ endpoints, ports }: EndpointSlice): string {
  const ready = (endpoints ?? []).filter(({ conditions }) => conditions?.ready ?? true);
  return JSON.stringify([ready.map(({ addresses, targetRef }) => [addresses, targetRef?.uid ?? ""]), ports ?? []]);
}
