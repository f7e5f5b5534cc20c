import { describe, expect, it } from "vitest";
import { customResourceDefinitions } from "../../../constructs/crds/index.ts";
import { sortKeys, withoutDescriptions } from "../../../constructs/generate/canonical.ts";
import { isCrdKind, resolve, schemaOf } from "../../../src/schema/crd/kinds.ts";
import type { Schema } from "../../../src/schema/crd/structural-schema.ts";

/** The schema with every shared part in its place. */
function expand(stored: Schema): Schema {
  const schema = resolve(stored);
  return {
    ...schema,
    ...(schema.items ? { items: expand(schema.items) } : {}),
    ...(schema.additionalProperties ? { additionalProperties: expand(schema.additionalProperties) } : {}),
    ...(schema.properties
      ? {
          properties: Object.fromEntries(
            Object.entries(schema.properties).map(([name, field]) => [name, expand(field)]),
          ),
        }
      : {}),
  };
}

describe("stored schemas", () => {
  it.each(customResourceDefinitions.map((crd) => [crd.spec.names.kind, crd] as const))(
    "say about %s what its definition says",
    (kind, crd) => {
      if (!isCrdKind(kind)) throw new Error(`no stored schema of ${kind}`);
      const defined = withoutDescriptions(crd.spec.versions[0].schema.openAPIV3Schema);
      expect(sortKeys(expand(schemaOf(kind)))).toEqual(sortKeys(defined));
    },
  );
});
