// From the published description of a core type to the structural schema that stands inside a CustomResourceDefinition.
// The rules and the reason for each are in docs/adr/0002-core-types.md; the numbers below are those of the ADR.
import type { Schema } from "../../../src/schema/crd/structural-schema.ts";
import type { OpenApiDefinitions, OpenApiSchema } from "./document.ts";

/** A schema in which a named definition stands as a reference to be rendered by its name. */
export type CoreSchema = Schema | CoreReference | CoreComposite;

/** Use of another definition, perhaps with a default of the place where it stands. */
export interface CoreReference {
  readonly reference: string;
  readonly default?: string | number | boolean;
}

/** A schema that holds other core schemas. */
export interface CoreComposite {
  readonly type: "object" | "array";
  readonly items?: CoreSchema;
  readonly properties?: Readonly<Record<string, CoreSchema>>;
  readonly additionalProperties?: CoreSchema;
}

/** Rule 6: Go writes these defaults by the name of a constant, which the CRD tool does not resolve. */
const unresolvedDefaults: Readonly<Record<string, readonly string[]>> = {
  "io.k8s.api.core.v1.AzureDiskVolumeSource": ["cachingMode", "kind"],
};

const objectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const localObjectReference = "io.k8s.api.core.v1.LocalObjectReference";

/** The structural schemas of the named definitions and of all that they use, users after what they use. */
export function convertCoreTypes(
  definitions: OpenApiDefinitions,
  roots: readonly string[],
): ReadonlyMap<string, CoreSchema> {
  const done = new Map<string, CoreSchema>();
  const visit = (name: string, path: readonly string[]): void => {
    if (done.has(name) || scalarNames.has(name) || name === objectMeta) return;
    if (path.includes(name)) throw new Error(`Core type ${name} contains itself; a CRD cannot express that.`);
    const definition = definitions[name];
    if (!definition) throw new Error(`The API description has no core type ${name}.`);
    for (const used of referencesOf(definition)) visit(used, [...path, name]);
    done.set(name, convertDefinition(definitions, name, definition));
  };
  for (const root of roots) visit(root, []);
  return done;
}

/** Rule 2: these two are written out as constants of their own. */
export const scalarNames: ReadonlyMap<string, string> = new Map([
  ["io.k8s.apimachinery.pkg.api.resource.Quantity", "quantity"],
  ["io.k8s.apimachinery.pkg.util.intstr.IntOrString", "intOrString"],
]);

function convertDefinition(definitions: OpenApiDefinitions, name: string, definition: OpenApiSchema): CoreSchema {
  const skipped = unresolvedDefaults[name] ?? [];
  const converted = convert(definition, skipped);
  return embedsLocalReference(definitions, name, definition)
    ? ({ ...converted, "x-kubernetes-map-type": "atomic" } as CoreSchema)
    : converted;
}

function convert(schema: OpenApiSchema, skippedDefaults: readonly string[] = []): CoreSchema {
  const target = referenceOf(schema);
  if (target === objectMeta) return { type: "object" }; // Rule 8
  if (target) return { reference: target };
  const required = new Set(schema.required ?? []);
  return {
    ...kept(schema),
    ...(schema.items ? { items: convert(schema.items) } : {}),
    ...(schema.additionalProperties ? { additionalProperties: convert(schema.additionalProperties) } : {}),
    ...(schema.properties
      ? {
          properties: Object.fromEntries(
            Object.entries(schema.properties).map(([name, property]) => [
              name,
              required.has(name) || skippedDefaults.includes(name)
                ? convert(property)
                : withDefault(convert(property), property.default),
            ]),
          ),
        }
      : {}),
    ...(required.size > 0 ? { required: [...required].sort() } : {}),
  } as CoreSchema;
}

/** Rules 1, 3 and 4: what stays of a definition; descriptions, enums and patch hints go. */
function kept(schema: OpenApiSchema): object {
  const keys = [
    "type",
    "format",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
  ] as const;
  return Object.fromEntries(keys.filter((key) => schema[key] !== undefined).map((key) => [key, schema[key]]));
}

/** Rule 5: a default counts on optional scalars; on required fields and on objects it is only Go's zero value. */
function withDefault(schema: CoreSchema, value: unknown): CoreSchema {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
    ? { ...schema, default: value }
    : schema;
}

/** Rule 7: a struct that embeds LocalObjectReference inherits its map type; the shared field text gives it away. */
function embedsLocalReference(definitions: OpenApiDefinitions, name: string, definition: OpenApiSchema): boolean {
  const text = definitions[localObjectReference]?.properties?.["name"]?.description;
  return name !== localObjectReference && text !== undefined && definition.properties?.["name"]?.description === text;
}

function referenceOf(schema: OpenApiSchema): string | undefined {
  return (schema.$ref ?? schema.allOf?.[0]?.$ref)?.split("/").pop();
}

function referencesOf(schema: OpenApiSchema): string[] {
  const own = referenceOf(schema);
  const nested = [
    ...Object.values(schema.properties ?? {}),
    ...(schema.items ? [schema.items] : []),
    ...(schema.additionalProperties ? [schema.additionalProperties] : []),
  ];
  return [...(own ? [own] : []), ...nested.flatMap(referencesOf)];
}
