import type { CelRule, Schema } from "../../../src/schema/crd/structural-schema.ts";
import { integer, listOf, object, required, string } from "../parts/builders.ts";
import { ageColumn, type CrdManifest, defineKind } from "../parts/definition.ts";
import { rule, uniqueBy } from "../parts/rules.ts";
import { extensionImages } from "./extension.ts";

/** Key of a component image, as a catalog defines it and a Pooler asks for it. */
export const componentKey: Schema = string("Key of the component's image in the catalog.", {
  maxLength: 63,
  pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
});

/** A reference to a catalog, with the fields that pick an image from it. */
export function catalogReference(
  description: string,
  pick: Parameters<typeof object>[1],
  rules: readonly CelRule[],
): Schema {
  return object(
    description,
    {
      apiGroup: string("API group of the catalog."),
      kind: required(string("Kind of the catalog: ImageCatalog or ClusterImageCatalog.")),
      name: required(string("Name of the catalog.")),
      ...pick,
    },
    { atomic: true, rules },
  );
}

/** The referenced object is a catalog of ours. */
export function catalogRules(kindMessage: string, groupMessage: string): readonly CelRule[] {
  return [
    rule(kindMessage, "self.kind == 'ImageCatalog' || self.kind == 'ClusterImageCatalog'"),
    rule(groupMessage, "self.apiGroup == 'postgresql.cnpg.io'"),
  ];
}

/** A catalog kind: the same content for a namespace or for the whole Kubernetes cluster. */
export function catalogKind(
  kind: "ImageCatalog" | "ClusterImageCatalog",
  scope: "Namespaced" | "Cluster",
  description: string,
): CrdManifest {
  return defineKind({ group: "postgresql.cnpg.io", kind, scope, description, columns: [ageColumn], spec: catalogSpec });
}

const catalogSpec: Schema = object("Images that clusters may use.", {
  componentImages: listOf(
    "Images of programs other than PostgreSQL, by key.",
    object("An image of one component.", {
      image: required(string("Image of the component.")),
      key: required(componentKey),
    }),
    { maxItems: 32, keys: ["key"], rules: [uniqueBy("key", "Component image keys must be unique")] },
  ),
  images: required(
    listOf(
      "PostgreSQL images, one for each major version.",
      object("The image of one major version.", {
        extensions: extensionImages("Extensions as images that go with this version."),
        image: required(string("Image of PostgreSQL.")),
        major: required(integer("Major version of PostgreSQL in the image.", { minimum: 10 })),
      }),
      { minItems: 1, maxItems: 8, rules: [uniqueBy("major", "Images must have unique major versions")] },
    ),
  ),
});
