import type { CelRule, Json, Schema } from "../../../src/schema/crd/structural-schema.ts";

/** A field that must be present; made by {@link required}. */
export interface RequiredField {
  readonly required: true;
  readonly schema: Schema;
}

/** Fields of an object by name. */
export type Fields = Readonly<Record<string, Schema | RequiredField>>;

interface Common {
  readonly default?: Json;
  readonly rules?: readonly CelRule[];
}

/** Marks a field that must be present. */
export function required(schema: Schema): RequiredField {
  return { required: true, schema };
}

/** A piece of text. */
export function string(
  description: string,
  options: Common & {
    readonly pattern?: string;
    readonly minLength?: number;
    readonly maxLength?: number;
    readonly format?: "date-time" | "byte";
  } = {},
): Schema {
  return { type: "string", description, ...written(options) };
}

/** A point in time as RFC 3339 text. */
export function dateTime(description: string): Schema {
  return string(description, { format: "date-time" });
}

/** One of a closed list of words. */
export function enumOf(description: string, values: readonly string[], options: Common = {}): Schema {
  return { type: "string", description, enum: values, ...written(options) };
}

/** A whole number; without `bits` the width is left to the reader. */
export function integer(
  description: string,
  options: Common & { readonly bits?: 32 | 64; readonly minimum?: number; readonly maximum?: number } = {},
): Schema {
  const { bits, ...rest } = options;
  return { type: "integer", description, ...(bits ? { format: `int${bits}` as const } : {}), ...written(rest) };
}

/** True or false. */
export function boolean(description: string, options: Common = {}): Schema {
  return { type: "boolean", description, ...written(options) };
}

/** An object with named fields. */
export function object(
  description: string,
  fields: Fields,
  options: Common & { readonly atomic?: boolean } = {},
): Schema {
  const { atomic, ...rest } = options;
  const names = Object.keys(fields).filter((name) => isRequired(fields[name]));
  return {
    type: "object",
    description,
    properties: Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, schemaOf(field)])),
    ...(names.length > 0 ? { required: names } : {}),
    ...(atomic ? { "x-kubernetes-map-type": "atomic" as const } : {}),
    ...written(rest),
  };
}

/** An object with free keys and values of one schema. */
export function mapOf(description: string, values: Schema): Schema {
  return { type: "object", description, additionalProperties: values };
}

/** An object with free keys and text values. */
export function stringMap(description: string): Schema {
  return mapOf(description, { type: "string" });
}

interface ListOptions extends Common {
  readonly minItems?: number;
  readonly maxItems?: number;
  /** Fields that identify an item: the list merges like a map and refuses two items with the same values. */
  readonly keys?: readonly string[];
  /** The whole list is replaced on merge. */
  readonly atomic?: boolean;
}

/** A list of one schema. */
export function listOf(description: string, items: Schema, options: ListOptions = {}): Schema {
  const { keys, atomic, ...rest } = options;
  return {
    type: "array",
    description,
    items,
    ...(keys ? { "x-kubernetes-list-type": "map" as const, "x-kubernetes-list-map-keys": keys } : {}),
    ...(atomic ? { "x-kubernetes-list-type": "atomic" as const } : {}),
    ...written(rest),
  };
}

/** A list of texts. */
export function stringList(description: string, options: ListOptions = {}): Schema {
  return listOf(description, { type: "string" }, options);
}

/** Uses a shared or core part as it is, under a description and with additions of the place where it stands. */
export function use(description: string, part: Schema, options: Common = {}): Schema {
  return { ...part, description, ...written(options) };
}

/** An object part with more fields, sorted in by name on output. */
export function extend(part: Schema, fields: Fields): Schema {
  const more = object("", fields);
  const all = [...(part.required ?? []), ...(more.required ?? [])];
  return {
    ...part,
    properties: { ...part.properties, ...more.properties },
    ...(all.length > 0 ? { required: all } : {}),
  };
}

/** The fields of an object part, so that another object may hold them beside its own. */
export function fieldsOf(part: Schema): Fields {
  const needed = new Set(part.required ?? []);
  return Object.fromEntries(
    Object.entries(part.properties ?? {}).map(([name, schema]) => [name, needed.has(name) ? required(schema) : schema]),
  );
}

function isRequired(field: Schema | RequiredField | undefined): field is RequiredField {
  return field !== undefined && "schema" in field;
}

function schemaOf(field: Schema | RequiredField): Schema {
  return isRequired(field) ? field.schema : field;
}

function written<T extends Common>(options: T): Omit<T, "rules"> & Pick<Schema, "x-kubernetes-validations"> {
  const { rules, ...rest } = options;
  return rules ? { ...rest, "x-kubernetes-validations": rules } : rest;
}
