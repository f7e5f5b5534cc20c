import type { Schema } from "../../../src/schema/crd/structural-schema.ts";
import { localObjectReference } from "../core/generated/kubernetes.ts";
import { object, required, string } from "../parts/builders.ts";
import { immutable } from "../parts/rules.ts";

/** Names another object of the namespace. */
export function nameReference(description: string): Schema {
  return object(description, { name: required(string("Name of the object.")) });
}

/** Names one key of a Secret of the namespace. */
export function secretKey(description: string): Schema {
  return object(description, {
    key: required(string("Key inside the Secret.")),
    name: required(string("Name of the Secret.")),
  });
}

/** Names one key of a ConfigMap of the namespace. */
export function configMapKey(description: string): Schema {
  return object(description, {
    key: required(string("Key inside the ConfigMap.")),
    name: required(string("Name of the ConfigMap.")),
  });
}

const clusterIsFixed = immutable("cluster reference is immutable after creation");

/** The cluster that a ScheduledBackup or a Pooler belongs to, fixed at creation. */
export const ownCluster: Schema = {
  ...nameReference("Cluster that this object belongs to; it cannot be changed later."),
  "x-kubernetes-validations": [clusterIsFixed],
};

/** The cluster whose databases a declarative object manages, fixed at creation. */
export const managedCluster: Schema = {
  ...localObjectReference,
  description: "Cluster in which the object is managed; it cannot be changed later.",
  "x-kubernetes-validations": [clusterIsFixed],
};
