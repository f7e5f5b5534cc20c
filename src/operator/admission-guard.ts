import type { Cluster } from "../api/generated/cluster.ts";
import type { BuildContext } from "../build/context.ts";
import { buildInstancePod } from "../build/instance-pod.ts";
import { sameJson } from "../build/same-json.ts";
import { validateClusterCreate } from "../schema/admission/cluster.ts";
import { applyDefaults } from "../schema/admission/defaults.ts";
import { formatFieldIssue } from "../schema/admission/field-issue.ts";
import type { AdmissionContext } from "../schema/admission/settings.ts";

export type GuardVerdict =
  | { kind: "admitted"; cluster: Cluster }
  /** Defaults are missing; this is the object with them, to be written. */
  | { kind: "defaulted"; cluster: Cluster }
  /** `reason` is the phase's text; `errors` are for the log and the event. */
  | { kind: "rejected"; reason: string; errors: readonly string[] };

/** Applies the webhooks' rules to objects that came past them (reference: cluster controller §1.2, O3). */
export interface AdmissionGuard {
  check(cluster: Cluster): GuardVerdict;
}

/** What admission has to know of the operator, for the guard and the webhooks alike. */
export function admissionContextOf(context: BuildContext): AdmissionContext {
  return { settings: context, buildPod: (cluster) => buildInstancePod(cluster, 1, context) };
}

export function createAdmissionGuard(context: BuildContext): AdmissionGuard {
  const admission = admissionContextOf(context);
  // A cluster comes by many times between two changes of its spec: the verdict is kept until something else is asked.
  const known = new Map<string, { key: string; verdict: GuardVerdict }>();
  return {
    check(cluster) {
      const uid = cluster.metadata.uid ?? "";
      const key = JSON.stringify([cluster.spec, cluster.metadata.annotations, cluster.metadata.name]);
      const before = known.get(uid);
      if (before?.key === key)
        return before.verdict.kind === "admitted" ? { kind: "admitted", cluster } : before.verdict;
      const verdict = judge(cluster, admission);
      if (verdict.kind === "defaulted") known.delete(uid);
      else known.set(uid, { key, verdict });
      return verdict;
    },
  };
}

function judge(cluster: Cluster, admission: AdmissionContext): GuardVerdict {
  const { settings } = admission;
  const preserved = applyDefaults(cluster, { mode: "preserve", settings });
  if (!sameJson(preserved.spec, cluster.spec)) return { kind: "defaulted", cluster: preserved };
  const issues = validateClusterCreate(cluster, admission);
  if (issues.length > 0) {
    const fields = [...new Set(issues.map((it) => it.path))].join(", ");
    const where = fields ? ` on: ${fields}` : "";
    const reason = `the resource failed admission validation${where} (see the operator logs for details)`;
    return { kind: "rejected", reason, errors: [...new Set(issues.map(formatFieldIssue))] };
  }
  // Where validation was switched off, what only the operator decides still is the operator's.
  const enforced = applyDefaults(cluster, { mode: "enforce", settings });
  if (!sameJson(enforced.spec, cluster.spec)) return { kind: "defaulted", cluster: enforced };
  return { kind: "admitted", cluster };
}
