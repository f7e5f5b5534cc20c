import type { Schema } from "../../../../src/schema/crd/structural-schema.ts";

/** Keyword of our own: the fields whose values together occur once in a list. */
export const uniqueKeys = "uniqueKeys";

const carriedOver = [
  "enum",
  "maxItems",
  "maxLength",
  "maximum",
  "minItems",
  "minLength",
  "minimum",
  "pattern",
  "required",
  "type",
  "$ref",
] as const satisfies readonly (keyof Schema)[];

const int32 = { minimum: -(2 ** 31), maximum: 2 ** 31 - 1 };

/** The structural schema as JSON Schema that accepts what the API server accepts and keeps. */
export function toJsonSchema(schema: Schema): object {
  const result: Record<string, unknown> = {};
  for (const keyword of carriedOver) if (schema[keyword] !== undefined) result[keyword] = schema[keyword];
  if (schema.format === "int32") {
    result["minimum"] ??= int32.minimum;
    result["maximum"] ??= int32.maximum;
  } else if (schema.type === "string" && schema.format) {
    result["format"] = schema.format;
  }
  if (schema["x-kubernetes-int-or-string"]) result["type"] = ["integer", "string"];
  if (schema["x-kubernetes-list-type"] === "set") result["uniqueItems"] = true;
  if (schema["x-kubernetes-list-map-keys"]) result[uniqueKeys] = schema["x-kubernetes-list-map-keys"];
  if (schema.items) result["items"] = toJsonSchema(schema.items);
  if (schema.additionalProperties) result["additionalProperties"] = toJsonSchema(schema.additionalProperties);
  if (schema.properties) {
    result["properties"] = Object.fromEntries(
      Object.entries(schema.properties).map(([name, field]) => [name, toJsonSchema(field)]),
    );
    // The API server drops fields that it does not know; a definition must not lose a field to a typing error.
    if (!schema["x-kubernetes-preserve-unknown-fields"]) result["additionalProperties"] ??= false;
  }
  return result;
}
