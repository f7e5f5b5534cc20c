import { catalogKind } from "./shared/catalog.ts";

/** CustomResourceDefinition of ClusterImageCatalog. */
export const clusterImageCatalog = catalogKind(
  "ClusterImageCatalog",
  "Cluster",
  "Images that the clusters of every namespace may choose from by major version.",
);
