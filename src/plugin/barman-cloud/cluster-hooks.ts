// The operator's calls: the sidecar into pods and recovery Jobs, and before each Cluster pass the access that it needs.
import type { Cluster } from "../../api/generated/cluster.ts";
import type { ObjectStore } from "../../api/generated/objectstore.ts";
import type { KubeApi, Store } from "../../ports/kube-api.ts";
import type { Logger } from "../../ports/logger.ts";
import { buildJsonPatch } from "../framework/json-patch.ts";
import type { LifecycleService, ReconcilerService } from "../framework/services.ts";
import { StatusError } from "../framework/status-error.ts";
import {
  checkExternalStore,
  checkOwnStore,
  checkReplicaArchive,
  readClusterStores,
  storeNames,
  warnAboutStores,
} from "./cluster-stores.ts";
import { type AccessDeps, ensureAccess } from "./ensure-access.ts";
import { injectSidecar } from "./inject-sidecar.ts";
import { readStoreObjects } from "./store-objects.ts";

export interface HookDeps extends AccessDeps {
  api: KubeApi;
  /** A watched copy of all ObjectStores. */
  objectStores: Store<ObjectStore>;
  sidecarImage: string;
  logger: Logger;
}

/** The lifecycle hook. */
export function createLifecycleService(deps: HookDeps): LifecycleService {
  return {
    capabilities: [
      { group: "", kind: "Pod", operations: ["create", "evaluate"] },
      { group: "batch", kind: "Job", operations: ["create"] },
    ],
    async hook({ cluster, object }, { signal }) {
      const stores = readClusterStores(cluster);
      const names = storeNames(stores);
      if (names.length === 0) return undefined;
      const source = { api: deps.api, copy: deps.objectStores, signal };
      const { found, missing } = await readStoreObjects(names, stores.namespace, source);
      if (missing.length > 0) {
        throw new StatusError(
          "FAILED_PRECONDITION",
          `ObjectStore ${stores.namespace}/${missing.join(", ")} does not exist: create it, or name another in Cluster ${cluster.metadata.name}`,
        );
      }
      const input = { cluster, stores, objects: found, image: deps.sidecarImage };
      return buildJsonPatch(object, injectSidecar(object, input));
    },
  };
}

/** The reconciler hooks. */
export function createReconcilerService(deps: HookDeps): ReconcilerService {
  const warned = new Map<string, string>();
  return {
    kinds: ["Cluster", "Backup"],
    async pre({ resource }, { signal }) {
      if (resource.kind !== "Cluster") return undefined;
      const cluster = resource as Cluster;
      const stores = readClusterStores(cluster);
      const key = `${stores.namespace}/${cluster.metadata.name}`;
      const logger = deps.logger.child({ namespace: stores.namespace, cluster: cluster.metadata.name });
      complain(cluster, key, warned, logger);
      const names = storeNames(stores);
      if (names.length === 0) return undefined;
      const source = { api: deps.api, copy: deps.objectStores, signal };
      const { found, missing } = await readStoreObjects(names, stores.namespace, source);
      if (missing.length > 0) {
        logger.info("An ObjectStore does not exist yet, the cluster waits for it", { missing });
        return { behavior: "requeue", requeueAfterSeconds: 0 };
      }
      await ensureAccess(cluster, [...found.values()], { ...deps, logger }, signal);
      return undefined;
    },
  };
}

/** Says once what is amiss with a Cluster, and again when that changes. */
function complain(cluster: Cluster, key: string, warned: Map<string, string>, logger: Logger): void {
  const { bootstrap, replica } = cluster.spec;
  const problems = [
    checkOwnStore(cluster),
    checkExternalStore(cluster, bootstrap?.recovery?.source),
    checkExternalStore(cluster, replica?.source),
    checkReplicaArchive(cluster),
    ...warnAboutStores(cluster),
  ].filter((problem) => problem !== null);
  const text = [...new Set(problems)].join("; ");
  if ((warned.get(key) ?? "") === text) return;
  if (text === "") warned.delete(key);
  else warned.set(key, text);
  if (text !== "") logger.warning("The plugin's part of the Cluster needs attention", { problems: text });
}
