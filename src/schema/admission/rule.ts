import type { Cluster } from "../../api/generated/cluster.ts";
import type { FieldIssue } from "./field-issue.ts";
import type { AdmissionContext } from "./settings.ts";

/** A group of checks on one part of a cluster; finds all that is wrong with it. */
export type ClusterRule = (cluster: Cluster, context: AdmissionContext) => FieldIssue[];

/** The value when the condition holds, else nothing; for lists of issues. */
export function when<T>(condition: boolean, ...issues: T[]): T[] {
  return condition ? issues : [];
}
