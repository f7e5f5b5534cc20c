import { defaultMonitoringName } from "../api/names.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import type { Runnable } from "../runtime/runnable.ts";
import { type DeletedClusterOptions, dependents, removeUnusedQueries } from "./deleted-cluster.ts";

/** How often what deleted clusters left behind is looked for, in milliseconds. */
const sweepMs = 300_000;

export interface OrphanSweepOptions extends DeletedClusterOptions {
  clock: Clock;
  logger: Logger;
  /** Empty = all. */
  watchNamespaces: readonly string[];
  enqueue(key: string): void;
}

/**
 * Finds what clusters left behind whose deletion nobody told: they went while no operator ran, or an instance put its
 * finalizer on an object just before it ended. A pass over the cluster that is gone then lets the object go.
 */
export function createOrphanSweep(options: OrphanSweepOptions): Runnable {
  const { clock, logger } = options;
  return {
    name: "orphan sweep",
    async run(stop) {
      while (!stop.aborted) {
        try {
          await sweep(options, stop);
        } catch (error) {
          if (!stop.aborted) logger.warning("Objects of deleted clusters could not be looked for", { error });
        }
        await clock.sleep(sweepMs, stop).catch(() => undefined);
      }
    },
  };
}

async function sweep(options: OrphanSweepOptions, signal: AbortSignal): Promise<void> {
  const { api, stores, watchNamespaces, enqueue } = options;
  const scopes = watchNamespaces.length === 0 ? [undefined] : watchNamespaces;
  for (const { type, finalizer } of dependents) {
    for (const namespace of scopes) {
      for (const { metadata, spec } of await api.list(type, namespace ? { namespace, signal } : { signal })) {
        const key = { namespace: metadata.namespace ?? "", name: spec.cluster.name };
        const isHeld = metadata.finalizers?.includes(finalizer) ?? false;
        if (isHeld && !stores.clusters.get(key)) enqueue(`${key.namespace}/${key.name}`);
      }
    }
  }
  const copies = [...stores.configMaps.list(), ...stores.secrets.list()];
  const namespaces = copies
    .filter((it) => it.metadata.name === defaultMonitoringName)
    .map((it) => it.metadata.namespace);
  for (const namespace of new Set(namespaces)) {
    if (namespace) await removeUnusedQueries(options, { namespace }, signal);
  }
}
