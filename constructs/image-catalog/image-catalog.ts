import type { Construct } from "constructs";
import { cnpgApiVersion } from "../../src/api/constants.ts";
import type { ImageCatalog as ImageCatalogObject } from "../../src/api/generated/imagecatalog.ts";
import { CustomResource, type ResourceProps } from "../base/custom-resource.ts";

/** The whole `spec` of a ImageCatalog, as the API has it. */
export type ImageCatalogSpec = ImageCatalogObject["spec"];

export interface ImageCatalogProps extends ResourceProps {
  /** The object's `spec`, passed through as it is. */
  readonly spec: ImageCatalogSpec;
}

/** Operand images by PostgreSQL major version, for one namespace. */
export class ImageCatalog extends CustomResource {
  constructor(scope: Construct, id: string, props: ImageCatalogProps) {
    super(scope, id, props, { apiVersion: cnpgApiVersion, kind: "ImageCatalog", spec: props.spec });
  }
}
