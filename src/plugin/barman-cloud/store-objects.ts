import type { ObjectStore } from "../../api/generated/objectstore.ts";
import { resources } from "../../kube/resources.ts";
import { isKubeError, type KubeApi, type Store } from "../../ports/kube-api.ts";

/** Some of the ObjectStores that a Cluster names, and the names of those that certainly do not exist. */
export interface StoreObjects {
  found: ReadonlyMap<string, ObjectStore>;
  missing: readonly string[];
}

/**
 * Reads ObjectStores by name. A watched copy answers for those it has; one that it lacks is asked for, since the copy may be
 * behind. A failed request fails the whole: it never makes a store look absent.
 */
export async function readStoreObjects(
  names: readonly string[],
  namespace: string,
  source: { api: KubeApi; copy?: Store<ObjectStore> | undefined; signal?: AbortSignal },
): Promise<StoreObjects> {
  const found = new Map<string, ObjectStore>();
  const missing: string[] = [];
  for (const name of names) {
    const object = source.copy?.get({ namespace, name }) ?? (await readLive(name, namespace, source));
    if (object) found.set(name, object);
    else missing.push(name);
  }
  return { found, missing };
}

async function readLive(
  name: string,
  namespace: string,
  { api, signal }: { api: KubeApi; signal?: AbortSignal },
): Promise<ObjectStore | undefined> {
  try {
    return await api.get(resources.objectStores, { namespace, name }, signal ? { signal } : {});
  } catch (error) {
    if (isKubeError(error, "notFound")) return undefined;
    throw error;
  }
}
