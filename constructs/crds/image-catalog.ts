import { catalogKind } from "./shared/catalog.ts";

/** CustomResourceDefinition of ImageCatalog. */
export const imageCatalog = catalogKind(
  "ImageCatalog",
  "Namespaced",
  "Images that the clusters of a namespace may choose from by major version.",
);
