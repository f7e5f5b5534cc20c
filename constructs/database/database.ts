import type { Construct } from "constructs";
import { cnpgApiVersion } from "../../src/api/constants.ts";
import type { Database as DatabaseObject } from "../../src/api/generated/database.ts";
import { CustomResource, type ResourceProps } from "../base/custom-resource.ts";

/** The whole `spec` of a Database, as the API has it. */
export type DatabaseSpec = DatabaseObject["spec"];

export interface DatabaseProps extends ResourceProps {
  /** The object's `spec`, passed through as it is. */
  readonly spec: DatabaseSpec;
}

/** A database kept as declared inside a cluster. */
export class Database extends CustomResource {
  constructor(scope: Construct, id: string, props: DatabaseProps) {
    super(scope, id, props, { apiVersion: cnpgApiVersion, kind: "Database", spec: props.spec });
  }
}
