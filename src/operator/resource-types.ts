import { resources } from "../kube/resources.ts";
import type { KubeObject, ResourceType } from "../ports/kube-api.ts";

const byKind = new Map<string, ResourceType<KubeObject>>(
  Object.values(resources).map((type) => [
    `${type.group ? `${type.group}/` : ""}${type.version}/${type.kind}`,
    type as ResourceType<KubeObject>,
  ]),
);

/** The type of a planned object by what it says of itself; throws for a kind that no program writes. */
export function resourceTypeOf(object: { apiVersion: string; kind: string }): ResourceType<KubeObject> {
  const type = byKind.get(`${object.apiVersion}/${object.kind}`);
  if (!type) throw new Error(`no resource type is known for ${object.apiVersion} ${object.kind}`);
  return type;
}
