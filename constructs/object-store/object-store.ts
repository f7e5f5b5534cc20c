import type { Construct } from "constructs";
import { barmanApiVersion } from "../../src/api/constants.ts";
import type { ObjectStore as ObjectStoreObject } from "../../src/api/generated/objectstore.ts";
import { CustomResource, type ResourceProps } from "../base/custom-resource.ts";

/** The whole `spec` of a ObjectStore, as the API has it. */
export type ObjectStoreSpec = ObjectStoreObject["spec"];

export interface ObjectStoreProps extends ResourceProps {
  /** The object's `spec`, passed through as it is. */
  readonly spec: ObjectStoreSpec;
}

/** An object store that the barman-cloud plugin archives to. */
export class ObjectStore extends CustomResource {
  constructor(scope: Construct, id: string, props: ObjectStoreProps) {
    super(scope, id, props, { apiVersion: barmanApiVersion, kind: "ObjectStore", spec: props.spec });
  }
}
