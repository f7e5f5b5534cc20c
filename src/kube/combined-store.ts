import type { KubeObject, ObjectKey, Store, StoreEvent } from "../ports/kube-api.ts";

/** Stores of single namespaces seen as one, for programs that may watch only some namespaces. */
export function combineStores<T extends KubeObject>(parts: ReadonlyMap<string, Store<T>>): Store<T> {
  const first = parts.values().next().value;
  if (!first) throw new Error("at least one namespace is needed");
  return {
    type: first.type,
    get: (key: ObjectKey) => parts.get(key.namespace ?? "")?.get(key),
    list: (namespace) =>
      namespace === undefined
        ? [...parts.values()].flatMap((part) => part.list())
        : (parts.get(namespace)?.list(namespace) ?? []),
    async synced(signal) {
      await Promise.all([...parts.values()].map((part) => part.synced(signal)));
    },
    staleForMs: () => Math.max(...[...parts.values()].map((part) => part.staleForMs())),
    subscribe(handler: (event: StoreEvent<T>) => void) {
      const stops = [...parts.values()].map((part) => part.subscribe(handler));
      return () => {
        for (const stop of stops) stop();
      };
    },
    observeWrite: (object) => parts.get(object.metadata.namespace ?? "")?.observeWrite(object),
  };
}
