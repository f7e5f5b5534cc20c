import type { CelRule } from "../../../src/schema/crd/structural-schema.ts";

/** A rule with the text that users see when it fails. */
export function rule(message: string, expression: string): CelRule {
  return { message, rule: expression };
}

/** The value may be set once and never changed; adding or removing an optional field passes. */
export function immutable(message: string): CelRule {
  return rule(message, "self == oldSelf");
}

/** Two optional fields that exclude each other. */
export function notBoth(first: string, second: string, message: string): CelRule {
  return rule(message, `!(has(self.${first}) && has(self.${second}))`);
}

/** Every item of the list has its own value of the field. */
export function uniqueBy(field: string, message: string): CelRule {
  return rule(message, `self.all(e, self.filter(f, f.${field}==e.${field}).size() == 1)`);
}
