import type { Construct } from "constructs";
import { cnpgApiVersion } from "../../src/api/constants.ts";
import type { DatabaseRole as DatabaseRoleObject } from "../../src/api/generated/databaserole.ts";
import { CustomResource, type ResourceProps } from "../base/custom-resource.ts";

/** The whole `spec` of a DatabaseRole, as the API has it. */
export type DatabaseRoleSpec = DatabaseRoleObject["spec"];

export interface DatabaseRoleProps extends ResourceProps {
  /** The object's `spec`, passed through as it is. */
  readonly spec: DatabaseRoleSpec;
}

/** A PostgreSQL role kept as declared inside a cluster. */
export class DatabaseRole extends CustomResource {
  constructor(scope: Construct, id: string, props: DatabaseRoleProps) {
    super(scope, id, props, { apiVersion: cnpgApiVersion, kind: "DatabaseRole", spec: props.spec });
  }
}
