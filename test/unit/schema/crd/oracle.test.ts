import { Ajv, type AnySchema } from "ajv";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formats } from "../../../../src/schema/crd/formats.ts";
import { applySchemaDefaults, crdKinds, validateAgainstSchema } from "../../../../src/schema/crd/index.ts";
import { isObject, isSameData } from "../../../../src/schema/crd/json.ts";
import { resolve, schemaOf, sharedDefinitions } from "../../../../src/schema/crd/kinds.ts";
import type { Schema } from "../../../../src/schema/crd/structural-schema.ts";
import { toJsonSchema, uniqueKeys } from "./json-schema.ts";

const ajv = new Ajv({ strict: false, inlineRefs: false });
for (const [name, { test }] of Object.entries(formats)) ajv.addFormat(name, { type: "string", validate: test });
ajv.addKeyword({
  keyword: uniqueKeys,
  type: "array",
  validate: (keys: readonly string[], items: readonly unknown[]) => {
    const identities = items.filter(isObject).map((item) => keys.map((key) => item[key]));
    return identities.every((one, index) => !identities.slice(0, index).some((other) => isSameData(one, other)));
  },
});
const $defs = Object.fromEntries(Object.entries(sharedDefinitions()).map(([name, part]) => [name, toJsonSchema(part)]));

/** Values that mostly fit a schema, with a wrong one here and there. */
function valuesOf(stored: Schema, depth: number): fc.Arbitrary<unknown> {
  const schema = resolve(stored);
  const odd = fc.constantFrom<unknown>(null, "", "odd", -1, 1.5, 2 ** 31, true, [], {});
  return fc.oneof({ weight: 12, arbitrary: fittingValues(schema, depth) }, { weight: 1, arbitrary: odd });
}

function fittingValues(schema: Schema, depth: number): fc.Arbitrary<unknown> {
  if (schema["x-kubernetes-int-or-string"]) return fc.constantFrom<unknown>(1, "1Gi", "http", "500m");
  switch (schema.type) {
    case "boolean":
      return fc.boolean();
    case "integer":
      return fc.constantFrom(0, 1, 30, 26, 1024, 4096);
    case "string":
      return fc.constantFrom(...(schema.enum ?? []), "a", "app", "30d", "A_B", "Zm9v", "2026-01-31T12:00:00Z");
    case "array":
      return depth === 0 ? fc.constant([]) : fc.array(valuesOf(schema.items ?? {}, depth - 1), { maxLength: 3 });
    default:
      return depth === 0 ? fc.constant({}) : objectsOf(schema, depth);
  }
}

function objectsOf(schema: Schema, depth: number): fc.Arbitrary<unknown> {
  const { properties, additionalProperties } = schema;
  if (additionalProperties)
    return fc.dictionary(fc.constantFrom("a", "b.c/d"), valuesOf(additionalProperties, depth - 1));
  if (!properties) return fc.constant({});
  const needed = (schema.required ?? []).filter((name) => Object.hasOwn(properties, name));
  return fc
    .subarray(Object.keys(properties), { maxLength: Math.min(4, Object.keys(properties).length) })
    .map((names) => [...new Set([...needed, ...names])])
    .chain((names) =>
      fc.record(Object.fromEntries(names.map((name) => [name, valuesOf(properties[name] ?? {}, depth - 1)]))),
    )
    .chain((value) => fc.constantFrom(value, value, value, value, value, value, { ...(value as object), odd: 1 }));
}

describe("validateAgainstSchema against an independent validator", () => {
  it.each(crdKinds)("agrees on %s", (kind) => {
    const schema = schemaOf(kind);
    const validate = ajv.compile({ ...toJsonSchema(schema), $defs } as AnySchema);
    let accepted = 0;
    fc.assert(
      fc.property(objectsOf({ ...schema, required: ["metadata", "spec"] }, 6), (object) => {
        const wanted = validate(applySchemaDefaults(kind, object as object));
        if (wanted) accepted += 1;
        expect(validateAgainstSchema(kind, object as object).length === 0).toBe(wanted);
      }),
      { numRuns: 300 },
    );
    expect(accepted).toBeGreaterThan(0);
  });
});
