import type { Construct } from "constructs";
import { cnpgApiVersion } from "../../src/api/constants.ts";
import type { Pooler as PoolerObject } from "../../src/api/generated/pooler.ts";
import { CustomResource, type ResourceProps } from "../base/custom-resource.ts";

/** The whole `spec` of a Pooler, as the API has it. */
export type PoolerSpec = PoolerObject["spec"];

export interface PoolerProps extends ResourceProps {
  /** The object's `spec`, passed through as it is. */
  readonly spec: PoolerSpec;
}

/** A PgBouncer connection pooler in front of a cluster. */
export class Pooler extends CustomResource {
  constructor(scope: Construct, id: string, props: PoolerProps) {
    super(scope, id, props, { apiVersion: cnpgApiVersion, kind: "Pooler", spec: props.spec });
  }
}
