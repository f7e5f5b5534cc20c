import type { Cluster } from "../../api/generated/cluster.ts";
import type { Role, RoleBinding } from "../../api/generated/kubernetes.ts";
import type { ObjectStore } from "../../api/generated/objectstore.ts";
import { resources } from "../../kube/resources.ts";
import { isKubeError, type KubeApi, type KubeObject, type ResourceType, type Store } from "../../ports/kube-api.ts";
import type { Logger } from "../../ports/logger.ts";
import { buildAccessBinding, buildAccessRole } from "./access-role.ts";
import { type AccessStep, planBinding, planRole } from "./plan-access.ts";

export interface AccessDeps {
  api: KubeApi;
  /** Watched copies of the objects that carry the plugin's label. */
  roles: Store<Role>;
  roleBindings: Store<RoleBinding>;
  logger: Logger;
}

/** Makes sure that the instances of a Cluster may read these stores and their credentials, and no others. */
export async function ensureAccess(
  cluster: Cluster,
  stores: readonly ObjectStore[],
  deps: AccessDeps,
  signal?: AbortSignal,
): Promise<void> {
  const role = buildAccessRole(cluster, stores);
  const binding = buildAccessBinding(cluster);
  const options = { ...deps, ...(signal ? { signal } : {}) };
  await converge(resources.roles, role, deps.roles, (live) => planRole(live, role), options);
  await converge(resources.roleBindings, binding, deps.roleBindings, (live) => planBinding(live, binding), options);
}

const attempts = 5;

/** Takes the planned step; a copy that was behind leads to a fresh look. */
export async function converge<T extends KubeObject>(
  type: ResourceType<T>,
  wanted: KubeObject,
  copy: Store<T>,
  plan: (live: T | undefined) => AccessStep<T>,
  { api, logger, signal }: { api: KubeApi; logger: Logger; signal?: AbortSignal },
): Promise<void> {
  const { namespace = "", name = "" } = wanted.metadata;
  const options = signal ? { signal } : {};
  let live = copy.get({ namespace, name });
  for (let attempt = 1; ; attempt++) {
    const step = plan(live);
    if (step.kind === "none") return;
    try {
      if (step.kind === "create") copy.observeWrite(await api.create(type, step.object, options));
      else copy.observeWrite(await api.update(type, step.object, options));
      logger.info("Access to the object stores was written", { kind: type.kind, name, step: step.kind });
      return;
    } catch (error) {
      // Somebody was faster, or an object without our label has the name.
      if (!isKubeError(error, "conflict", "alreadyExists", "notFound") || attempt >= attempts) throw error;
      live = await find(api, type, namespace, name, signal);
    }
  }
}

async function find<T extends KubeObject>(
  api: KubeApi,
  type: ResourceType<T>,
  namespace: string,
  name: string,
  signal: AbortSignal | undefined,
): Promise<T | undefined> {
  try {
    return await api.get(type, { namespace, name }, signal ? { signal } : {});
  } catch (error) {
    if (isKubeError(error, "notFound")) return undefined;
    throw error;
  }
}
