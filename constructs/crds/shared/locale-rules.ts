import type { CelRule } from "../../../src/schema/crd/structural-schema.ts";
import { rule } from "../parts/rules.ts";

/** Locale fields that only make sense with their provider; for a new database and for initdb alike. */
export const localeRules: readonly CelRule[] = [
  onlyWith("builtinLocale", "builtin"),
  onlyWith("icuLocale", "icu"),
  onlyWith("icuRules", "icu"),
];

function onlyWith(field: string, provider: string): CelRule {
  return rule(
    `${field} is only available when localeProvider is set to \`${provider}\``,
    `!has(self.${field}) || self.localeProvider == '${provider}'`,
  );
}
