import type { Cluster } from "../../api/generated/cluster.ts";
import { clusterRules } from "./cluster-rules.ts";
import { applyDefaults } from "./defaults.ts";
import { type FieldIssue, formatFieldIssue } from "./field-issue.ts";
import type { AdmissionContext } from "./settings.ts";
import { checkUpdate } from "./update-rules.ts";
import { isValidationDisabled } from "./warnings.ts";

/** What is wrong with a new cluster, its defaults applied; nothing when its annotation turns validation off. */
export function validateClusterCreate(cluster: Cluster, context: AdmissionContext): FieldIssue[] {
  if (isValidationDisabled(cluster)) return [];
  return unique(clusterRules.flatMap((rule) => rule(cluster, context)));
}

/** What is wrong with a changed cluster, its defaults applied; those of the previous object are applied here. */
export function validateClusterUpdate(next: Cluster, previous: Cluster, context: AdmissionContext): FieldIssue[] {
  if (isValidationDisabled(next)) return [];
  const before = applyDefaults(previous, { mode: "preserve", settings: context.settings });
  return unique([...clusterRules.flatMap((rule) => rule(next, context)), ...checkUpdate(next, before)]);
}

function unique(issues: readonly FieldIssue[]): FieldIssue[] {
  return [...new Map(issues.map((issue) => [formatFieldIssue(issue), issue])).values()];
}
