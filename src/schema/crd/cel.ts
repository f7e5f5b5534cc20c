import { checkRule, isTransitionRule } from "./cel-rule.ts";
import { applySchemaDefaults } from "./defaults.ts";
import type { SchemaIssue } from "./issue.ts";
import { isObject, isSameData, joinPath } from "./json.ts";
import { type CrdKind, resolve, schemaOf } from "./kinds.ts";
import type { Schema } from "./structural-schema.ts";

/**
 * The CEL rules of the kind that the object breaks. Defaults count as given.
 * Rules that compare with the former state only run when that is given, and only where it has the field too.
 */
export function evaluateCelRules(kind: CrdKind, object: object, oldObject?: object): SchemaIssue[] {
  const issues: SchemaIssue[] = [];
  const old = oldObject && applySchemaDefaults(kind, oldObject);
  visit({ schema: schemaOf(kind), value: applySchemaDefaults(kind, object), old, path: "" }, issues);
  return issues;
}

interface Place {
  readonly schema: Schema;
  readonly value: unknown;
  /** Undefined where there is none, or where it cannot be told which one it is. */
  readonly old: unknown;
  readonly path: string;
}

function visit(place: Place, issues: SchemaIssue[]): void {
  const schema = resolve(place.schema);
  checkRules({ ...place, schema }, issues);
  for (const child of childrenOf({ ...place, schema })) visit(child, issues);
}

function checkRules({ schema, value, old, path }: Place, issues: SchemaIssue[]): void {
  for (const rule of schema["x-kubernetes-validations"] ?? []) {
    if (isTransitionRule(rule) && old === undefined) continue;
    const message = checkRule(rule, { self: value, oldSelf: old });
    if (message !== null) issues.push({ path: `${path}${rule.fieldPath ?? ""}`, rule: "cel", message });
  }
}

function childrenOf({ schema, value, old, path }: Place): Place[] {
  if (Array.isArray(value)) {
    const { items } = schema;
    if (!items) return [];
    return value.map((item, index) => ({
      schema: items,
      value: item,
      old: formerItem(schema, item, old),
      path: joinPath(path, index),
    }));
  }
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([name, field]) => {
    const known = Object.hasOwn(schema.properties ?? {}, name)
      ? schema.properties?.[name]
      : schema.additionalProperties;
    const former = isObject(old) && Object.hasOwn(old, name) ? old[name] : undefined;
    return known ? [{ schema: known, value: field, old: former, path: joinPath(path, name) }] : [];
  });
}

/** Only in a list with keys does an item have a former self: the one with the same keys. */
function formerItem(schema: Schema, item: unknown, old: unknown): unknown {
  const keys = schema["x-kubernetes-list-map-keys"];
  if (!keys || !isObject(item) || !Array.isArray(old)) return undefined;
  return old.find((candidate) => isObject(candidate) && keys.every((key) => isSameData(candidate[key], item[key])));
}
