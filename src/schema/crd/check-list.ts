import type { Report } from "./issue.ts";
import { isObject, isSameData } from "./json.ts";
import type { Schema } from "./structural-schema.ts";

/** Checks a list against its size, and against items that may not occur twice. */
export function checkList(schema: Schema, items: readonly unknown[], path: string, report: Report): void {
  if (items.length < (schema.minItems ?? 0)) {
    report({ path, rule: "minItems", message: `must have at least ${schema.minItems} items` });
  }
  if (items.length > (schema.maxItems ?? Number.POSITIVE_INFINITY)) {
    report({ path, rule: "maxItems", message: `must have at most ${schema.maxItems} items, not ${items.length}` });
  }
  const keys = schema["x-kubernetes-list-map-keys"];
  if (keys && hasTwin(items.filter(isObject).map((item) => keys.map((key) => item[key])))) {
    report({ path, rule: "duplicate", message: `must not hold two items with the same ${keys.join(" and ")}` });
  }
  if (schema["x-kubernetes-list-type"] === "set" && hasTwin(items)) {
    report({ path, rule: "duplicate", message: "must not hold the same item twice" });
  }
}

function hasTwin(values: readonly unknown[]): boolean {
  return values.some((value, index) => values.slice(0, index).some((earlier) => isSameData(earlier, value)));
}
