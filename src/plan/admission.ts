import type { Cluster } from "../api/generated/cluster.ts";
import { sameJson } from "../build/same-json.ts";
import { validateClusterCreate } from "../schema/admission/cluster.ts";
import { applyDefaults } from "../schema/admission/defaults.ts";
import type { FieldIssue } from "../schema/admission/field-issue.ts";
import type { AdmissionContext } from "../schema/admission/settings.ts";

export type Admission =
  | { kind: "admitted" }
  /** Defaults are missing; this is the object with them. */
  | { kind: "defaulted"; cluster: Cluster }
  | { kind: "rejected"; issues: readonly FieldIssue[] };

/** What the webhooks would have made of a cluster that came past them. */
export function judgeAdmission(cluster: Cluster, admission: AdmissionContext): Admission {
  const { settings } = admission;
  const preserved = applyDefaults(cluster, { mode: "preserve", settings });
  if (!sameJson(preserved.spec, cluster.spec)) return { kind: "defaulted", cluster: preserved };
  const issues = validateClusterCreate(cluster, admission);
  if (issues.length > 0) return { kind: "rejected", issues };
  // Where validation was switched off, what only the operator decides still is the operator's.
  const enforced = applyDefaults(cluster, { mode: "enforce", settings });
  if (!sameJson(enforced.spec, cluster.spec)) return { kind: "defaulted", cluster: enforced };
  return { kind: "admitted" };
}
