import type { Schema } from "../../../src/schema/crd/structural-schema.ts";
import { serviceSpec } from "../core/generated/kubernetes.ts";
import { object, string, stringMap, use } from "../parts/builders.ts";

/** Name, labels and annotations for an object that the operator makes. */
export const templateMetadata: Schema = object("Name, labels and annotations of the object to be made.", {
  annotations: stringMap("Annotations of the object."),
  labels: stringMap("Labels of the object."),
  name: string("Name of the object."),
});

/** A Service that the operator makes. */
export function serviceTemplate(description: string): Schema {
  return object(description, {
    metadata: templateMetadata,
    spec: use("What the Service is to look like; the operator sets its selector.", serviceSpec),
  });
}

/** Name of the ServiceAccount to use instead of one made by the operator. */
export const serviceAccountName: Schema = string(
  "Existing ServiceAccount to run the pods with instead of one made by the operator; it cannot be changed later.",
  {
    maxLength: 253,
    pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    rules: [{ message: "serviceAccountName is immutable", rule: "self == oldSelf" }],
  },
);
