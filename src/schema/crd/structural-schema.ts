/** A rule in the Common Expression Language that the API server evaluates on one value. */
export interface CelRule {
  readonly rule: string;
  readonly message: string;
  /** Path, relative to the value, that the error names instead of the value itself. */
  readonly fieldPath?: string;
  readonly reason?: "FieldValueForbidden" | "FieldValueInvalid" | "FieldValueRequired" | "FieldValueDuplicate";
}

/** Data that may stand as a default. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** The part of a structural schema (apiextensions.k8s.io/v1) that the twelve kinds use. */
export interface Schema {
  /** Stored schemas only: a part that stands once, under this name among the shared definitions. */
  readonly $ref?: `#/$defs/${string}`;
  readonly type?: "object" | "array" | "string" | "integer" | "boolean";
  readonly description?: string;
  readonly format?: "int32" | "int64" | "date-time" | "byte";
  readonly default?: Json;
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema;
  readonly required?: readonly string[];
  readonly anyOf?: readonly Schema[];
  readonly "x-kubernetes-int-or-string"?: true;
  readonly "x-kubernetes-preserve-unknown-fields"?: true;
  readonly "x-kubernetes-list-type"?: "atomic" | "set" | "map";
  readonly "x-kubernetes-list-map-keys"?: readonly string[];
  readonly "x-kubernetes-map-type"?: "atomic" | "granular";
  readonly "x-kubernetes-validations"?: readonly CelRule[];
}
