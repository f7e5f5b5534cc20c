import { formats } from "./formats.ts";
import type { Report, SchemaRule } from "./issue.ts";
import type { Schema } from "./structural-schema.ts";

const int32 = { minimum: -(2 ** 31), maximum: 2 ** 31 - 1 };
const expressions = new Map<string, RegExp>();

/** Checks a text against length, pattern, format and list of words. */
export function checkString(schema: Schema, value: string, path: string, report: Report): void {
  const say = (rule: SchemaRule, message: string): void => report({ path, rule, message });
  if (schema.minLength !== undefined || schema.maxLength !== undefined) {
    const length = [...value].length; // The API server counts characters, not UTF-16 units.
    if (length < (schema.minLength ?? 0)) say("minLength", `must have at least ${schema.minLength} characters`);
    if (length > (schema.maxLength ?? Number.POSITIVE_INFINITY)) {
      say("maxLength", `must have at most ${schema.maxLength} characters, not ${length}`);
    }
  }
  if (schema.pattern !== undefined && !expressionOf(schema.pattern).test(value)) {
    say("pattern", `${show(value)} must match ${schema.pattern}`);
  }
  if ((schema.format === "byte" || schema.format === "date-time") && !formats[schema.format].test(value)) {
    say("format", `${show(value)} is not ${formats[schema.format].name}`);
  }
  if (schema.enum && !schema.enum.includes(value)) {
    say("enum", `must be one of ${schema.enum.join(", ")}, not ${show(value)}`);
  }
}

/** Checks a number against its bounds. */
export function checkInteger(schema: Schema, value: number, path: string, report: Report): void {
  const width = schema.format === "int32" ? int32 : undefined;
  const minimum = schema.minimum ?? width?.minimum;
  const maximum = schema.maximum ?? width?.maximum;
  if (minimum !== undefined && value < minimum) {
    report({ path, rule: "minimum", message: `must be at least ${minimum}, not ${value}` });
  }
  if (maximum !== undefined && value > maximum) {
    report({ path, rule: "maximum", message: `must be at most ${maximum}, not ${value}` });
  }
}

function expressionOf(pattern: string): RegExp {
  let expression = expressions.get(pattern);
  if (!expression) {
    expression = new RegExp(pattern, "u");
    expressions.set(pattern, expression);
  }
  return expression;
}

function show(value: string): string {
  const text = JSON.stringify(value);
  return text.length <= 80 ? text : `${text.slice(0, 77)}..."`;
}
