import type { Construct } from "constructs";
import { cnpgApiVersion } from "../../src/api/constants.ts";
import type { Publication as PublicationObject } from "../../src/api/generated/publication.ts";
import { CustomResource, type ResourceProps } from "../base/custom-resource.ts";

/** The whole `spec` of a Publication, as the API has it. */
export type PublicationSpec = PublicationObject["spec"];

export interface PublicationProps extends ResourceProps {
  /** The object's `spec`, passed through as it is. */
  readonly spec: PublicationSpec;
}

/** A logical replication publication. */
export class Publication extends CustomResource {
  constructor(scope: Construct, id: string, props: PublicationProps) {
    super(scope, id, props, { apiVersion: cnpgApiVersion, kind: "Publication", spec: props.spec });
  }
}
