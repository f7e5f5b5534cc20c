import type { KubeObject, ObjectKey, ResourceType } from "../ports/kube-api.ts";

/** `v1` or `group/version`. */
export function formatApiVersion(type: ResourceType<KubeObject>): string {
  return type.group ? `${type.group}/${type.version}` : type.version;
}

/** URL path of a group and version, where the server lists its kinds. */
export function groupPath(type: ResourceType<KubeObject>): string {
  return type.group ? `/apis/${type.group}/${type.version}` : `/api/${type.version}`;
}

/** URL path of a collection; of all namespaces when none is given. */
export function collectionPath(type: ResourceType<KubeObject>, namespace?: string): string {
  const scope = type.namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  return `${groupPath(type)}${scope}/${type.plural}`;
}

/** URL path of one object. Throws when a name is missing, which would address the whole collection. */
export function objectPath(type: ResourceType<KubeObject>, key: ObjectKey, subresource?: string): string {
  if (!key.name) throw new Error(`cannot address a ${type.kind} without a name`);
  if (type.namespaced && !key.namespace) throw new Error(`cannot address ${type.kind} ${key.name} without a namespace`);
  const path = `${collectionPath(type, key.namespace)}/${encodeURIComponent(key.name)}`;
  return subresource ? `${path}/${subresource}` : path;
}

/** `namespace/name`, or the name alone for cluster-scoped objects. */
export function formatKey(key: { namespace?: string | undefined; name?: string | undefined }): string {
  return key.namespace ? `${key.namespace}/${key.name}` : `${key.name}`;
}

/** The reverse of `formatKey`. */
export function parseKey(text: string): ObjectKey {
  const slash = text.indexOf("/");
  return slash < 0 ? { name: text } : { namespace: text.slice(0, slash), name: text.slice(slash + 1) };
}

/** Key of an object that has a name. */
export function keyOf(object: KubeObject): ObjectKey {
  const { namespace, name } = object.metadata;
  if (!name) throw new Error(`a ${object.kind ?? "Kubernetes"} object has no name`);
  return namespace ? { namespace, name } : { name };
}
