import { isObject } from "./json.ts";
import { type CrdKind, resolve, schemaOf } from "./kinds.ts";
import type { Schema } from "./structural-schema.ts";

/**
 * The object as the API server would store it: nulls and undefined fields dropped, defaults filled in.
 * A default inside an object only counts when the object is there, or has a default itself. The argument stays as it is.
 */
export function applySchemaDefaults<T extends object>(kind: CrdKind, object: T): T {
  return complete(schemaOf(kind), object) as T;
}

function complete(stored: Schema, value: unknown): unknown {
  const schema = resolve(stored);
  if (Array.isArray(value)) {
    const { items } = schema;
    return items ? value.map((item) => complete(items, item)) : structuredClone(value);
  }
  if (!isObject(value)) return value;
  const result: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(value)) {
    // A null asks for the default, as a field that is left out does.
    if (field === undefined || field === null) continue;
    const fieldSchema = schema.properties?.[name] ?? schema.additionalProperties;
    result[name] = fieldSchema ? complete(fieldSchema, field) : structuredClone(field);
  }
  for (const [name, fieldSchema] of Object.entries(schema.properties ?? {})) {
    const byDefault = resolve(fieldSchema).default;
    if (byDefault !== undefined && !Object.hasOwn(result, name)) {
      result[name] = complete(fieldSchema, structuredClone(byDefault));
    }
  }
  return result;
}
