import type { Construct } from "constructs";
import { cnpgApiVersion } from "../../src/api/constants.ts";
import type { ClusterImageCatalog as ClusterImageCatalogObject } from "../../src/api/generated/clusterimagecatalog.ts";
import { CustomResource, type ResourceProps } from "../base/custom-resource.ts";

/** The whole `spec` of a ClusterImageCatalog, as the API has it. */
export type ClusterImageCatalogSpec = ClusterImageCatalogObject["spec"];

export interface ClusterImageCatalogProps extends ResourceProps {
  /** The object's `spec`, passed through as it is. */
  readonly spec: ClusterImageCatalogSpec;
}

/** Operand images by PostgreSQL major version, for all namespaces. */
export class ClusterImageCatalog extends CustomResource {
  constructor(scope: Construct, id: string, props: ClusterImageCatalogProps) {
    super(scope, id, props, { apiVersion: cnpgApiVersion, kind: "ClusterImageCatalog", spec: props.spec });
  }
}
