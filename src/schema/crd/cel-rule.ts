import { Environment } from "@marcbachmann/cel-js";
import type { CelRule } from "./structural-schema.ts";

/** Value and former value as rules see them. */
export interface CelInput {
  readonly self: unknown;
  readonly oldSelf?: unknown;
}

type Program = (input: Record<string, unknown>) => unknown;

let environment: Environment | undefined;
const programs = new Map<string, Program>();

/** Whether the rule compares with the former value, and so says nothing about a new object. */
export function isTransitionRule(rule: CelRule): boolean {
  return /\boldSelf\b/.test(rule.rule);
}

/** Null when the rule holds, else why not; a rule that fails to evaluate does not hold, as in the API server. */
export function checkRule(rule: CelRule, input: CelInput): string | null {
  try {
    return programOf(rule.rule)({ self: toCel(input.self), oldSelf: toCel(input.oldSelf) }) === true
      ? null
      : rule.message;
  } catch (error) {
    return `${firstLine(error)} evaluating rule: ${rule.message}`;
  }
}

function programOf(expression: string): Program {
  let program = programs.get(expression);
  if (!program) {
    environment ??= new Environment().registerVariable("self", "dyn").registerVariable("oldSelf", "dyn");
    program = environment.parse(expression);
    programs.set(expression, program);
  }
  return program;
}

/** CEL's integers are 64 bits wide and never equal to a fraction; JSON has only one kind of number. */
function toCel(value: unknown): unknown {
  if (typeof value === "number") return Number.isInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(toCel);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, toCel(item)]));
}

function firstLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const line = text.split("\n")[0] ?? "";
  return line.charAt(0).toLowerCase() + line.slice(1);
}
