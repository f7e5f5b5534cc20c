import { checkList } from "./check-list.ts";
import { checkInteger, checkString } from "./check-scalar.ts";
import { applySchemaDefaults } from "./defaults.ts";
import type { Report, SchemaIssue } from "./issue.ts";
import { isObject, joinPath } from "./json.ts";
import { type CrdKind, resolve, schemaOf } from "./kinds.ts";
import type { Schema } from "./structural-schema.ts";

/**
 * Every way in which an object differs from the schema of its kind, fields that the schema does not know included.
 * Defaults count as given, as they do in the API server. CEL rules are checked by `evaluateCelRules`.
 */
export function validateAgainstSchema(kind: CrdKind, object: object): SchemaIssue[] {
  const issues: SchemaIssue[] = [];
  checkValue(schemaOf(kind), applySchemaDefaults(kind, object), "", (issue) => issues.push(issue));
  return issues;
}

function checkValue(stored: Schema, value: unknown, path: string, report: Report): void {
  const schema = resolve(stored);
  const actual = typeOf(value);
  if (schema["x-kubernetes-int-or-string"]) {
    if (actual === "string") checkString(schema, value as string, path, report);
    else if (actual !== "integer") reportType("integer or string");
    return;
  }
  if (schema.type !== undefined && actual !== schema.type) {
    reportType(schema.type);
    return;
  }
  if (typeof value === "string") checkString(schema, value, path, report);
  else if (typeof value === "number") checkInteger(schema, value, path, report);
  else if (Array.isArray(value)) {
    checkList(schema, value, path, report);
    const { items } = schema;
    if (items) for (const [index, item] of value.entries()) checkValue(items, item, joinPath(path, index), report);
  } else if (isObject(value)) checkObject(schema, value, path, report);

  function reportType(expected: string): void {
    report({ path, rule: "type", message: `must be ${expected}, not ${actual}` });
  }
}

function checkObject(schema: Schema, value: Record<string, unknown>, path: string, report: Report): void {
  for (const name of schema.required ?? []) {
    if (!Object.hasOwn(value, name)) report({ path: joinPath(path, name), rule: "required", message: "is required" });
  }
  for (const [name, field] of Object.entries(value)) {
    const known = Object.hasOwn(schema.properties ?? {}, name)
      ? schema.properties?.[name]
      : schema.additionalProperties;
    if (known) checkValue(known, field, joinPath(path, name), report);
    // The API server drops such a field without a word; a definition must not lose one to a typing error.
    else if (schema.properties && !schema["x-kubernetes-preserve-unknown-fields"]) {
      report({
        path: joinPath(path, name),
        rule: "unknownField",
        message: "there is no such field: check its spelling and its place",
      });
    }
  }
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}
