// Follows the ObjectStores: when one is made, changed or removed, the Roles that name it get the rules for what the stores
// say now. It never makes a Role, and nothing of an ObjectStore's bucket is ever removed with it.
import type { Role } from "../../api/generated/kubernetes.ts";
import type { ObjectStore } from "../../api/generated/objectstore.ts";
import { resources } from "../../kube/resources.ts";
import type { Clock } from "../../ports/clock.ts";
import type { KubeApi, Store } from "../../ports/kube-api.ts";
import type { Logger } from "../../ports/logger.ts";
import { createController } from "../../runtime/controller.ts";
import type { Metrics } from "../../runtime/metrics.ts";
import type { Runnable } from "../../runtime/runnable.ts";
import { createWorkQueue } from "../../runtime/work-queue.ts";
import { buildAccessRules, storesOfRole } from "./access-role.ts";
import { converge } from "./ensure-access.ts";
import { planRules } from "./plan-access.ts";
import { readStoreObjects } from "./store-objects.ts";

export interface StoreControllerDeps {
  api: KubeApi;
  objectStores: Store<ObjectStore>;
  roles: Store<Role>;
  clock: Clock;
  logger: Logger;
  metrics?: Pick<Metrics, "forController" | "forQueue"> | undefined;
}

/** The controller and the part that feeds it; both are for the leader only. */
export function createStoreController(deps: StoreControllerDeps): Runnable[] {
  const name = "objectstore";
  const { metrics } = deps;
  const queue = createWorkQueue({ name, clock: deps.clock, ...(metrics ? { metrics: metrics.forQueue(name) } : {}) });
  const controller = createController({
    name,
    queue,
    ...(metrics ? { metrics: metrics.forController(name, 1) } : {}),
    logger: deps.logger,
    clock: deps.clock,
    reconcile: (key, signal) => reconcileStore(key, deps, signal),
  });
  const watches: Runnable = {
    name: "objectstore watch",
    async run(stop) {
      const unsubscribe = deps.objectStores.subscribe((event) => {
        // Its status, which every backup changes, grants nothing.
        const same =
          event.type === "updated" && event.previous?.metadata.generation === event.object.metadata.generation;
        if (!same) queue.add(keyOf(event.object));
      });
      for (const store of deps.objectStores.list()) queue.add(keyOf(store));
      await new Promise<void>((resolve) => {
        if (stop.aborted) resolve();
        else stop.addEventListener("abort", () => resolve(), { once: true });
      });
      unsubscribe();
    },
  };
  return [watches, controller];
}

/** Brings the Roles of one store's namespace up to date; `key` is namespace and name. */
export async function reconcileStore(key: string, deps: StoreControllerDeps, signal?: AbortSignal): Promise<void> {
  const [namespace = "", name = ""] = key.split("/");
  const roles = deps.roles.list(namespace).filter((role) => storesOfRole(role).includes(name));
  for (const role of roles) {
    const source = { api: deps.api, copy: deps.objectStores, ...(signal ? { signal } : {}) };
    const { found } = await readStoreObjects(storesOfRole(role), namespace, source);
    const rules = buildAccessRules([...found.values()]);
    await converge(
      resources.roles,
      role,
      deps.roles,
      (live) => (live ? planRules(live, rules) : { kind: "none" }),
      signal ? { ...deps, signal } : deps,
    );
  }
}

function keyOf(store: ObjectStore): string {
  return `${store.metadata.namespace}/${store.metadata.name}`;
}
