import { invalid } from "./field-issue.ts";
import { type ClusterRule, when } from "./rule.ts";

const ownNames = new Set(["POD_NAME", "NAMESPACE", "CLUSTER_NAME"]);

/** Variables that the user adds to the environment of instances. */
export const checkEnvironment: ClusterRule = ({ spec }) =>
  (spec.env ?? []).flatMap(({ name }, i) =>
    when(isReservedVariable(name), invalid(`spec.env[${i}].name`, name, reservedVariableMessage)),
  );

export const reservedVariableMessage = "the usage of this environment variable is reserved for the operator";

/** Whether a variable is the operator's to set, in any case. */
export function isReservedVariable(name: string): boolean {
  const upper = name.toUpperCase();
  return upper.startsWith("PG") || upper.startsWith("CNPG_") || ownNames.has(upper);
}
