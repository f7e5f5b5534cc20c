// What the API server makes of an object of the twelve kinds, without an API server: defaults, schema, CEL rules.
export { evaluateCelRules } from "./cel.ts";
export { applySchemaDefaults } from "./defaults.ts";
export type { SchemaIssue, SchemaRule } from "./issue.ts";
export { type CrdKind, crdKinds, isCrdKind } from "./kinds.ts";
export { validateAgainstSchema } from "./validate.ts";
