import { type Fields, integer, listOf, required, string } from "../parts/builders.ts";
import { catalogReference, catalogRules } from "../shared/catalog.ts";
import { nameReference } from "../shared/references.ts";

const onlyCatalogs = "Only image catalogs are supported";

/** Which PostgreSQL image runs and how it is pulled. */
export const image: Fields = {
  imageCatalogRef: catalogReference(
    "Catalog that the image is taken from.",
    { major: required(integer("Major version of PostgreSQL to run.")) },
    catalogRules(onlyCatalogs, onlyCatalogs),
  ),
  imageName: string("Image of PostgreSQL; the operator's own choice by default."),
  imagePullPolicy: string("When images are pulled: Always, Never or IfNotPresent."),
  imagePullSecrets: listOf("Secrets that images are pulled with.", nameReference("A Secret of the namespace.")),
};
