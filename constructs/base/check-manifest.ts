import { applySchemaDefaults, evaluateCelRules, isCrdKind, validateAgainstSchema } from "../../src/schema/crd/index.ts";

interface Manifest {
  readonly kind: string;
  readonly metadata?: { readonly name?: string; readonly namespace?: string };
}

/**
 * Checks one synthesized object by the rules that the API server would apply. Each answer names the object, the field
 * and the rule; an empty list means that nothing is wrong.
 */
export function checkManifest(manifest: Manifest): string[] {
  if (!isCrdKind(manifest.kind)) return [];
  const { kind } = manifest;
  const issues = validateAgainstSchema(kind, manifest);
  // CEL rules are written for objects of the right shape, so they only run on such.
  if (issues.length === 0) issues.push(...evaluateCelRules(kind, applySchemaDefaults(kind, manifest)));
  const name = manifest.metadata?.name ?? "";
  return issues.map((issue) => `${kind} "${name}": ${issue.path}: ${issue.message}`);
}
