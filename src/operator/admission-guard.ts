import type { Cluster } from "../api/generated/cluster.ts";
import type { BuildContext } from "../build/context.ts";
import { buildInstancePod } from "../build/instance-pod.ts";
import { judgeAdmission } from "../plan/admission.ts";
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
  /** The Cluster with this UID is gone. */
  forget(uid: string): void;
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
    forget: (uid) => void known.delete(uid),
  };
}

function judge(cluster: Cluster, admission: AdmissionContext): GuardVerdict {
  const verdict = judgeAdmission(cluster, admission);
  if (verdict.kind === "admitted") return { kind: "admitted", cluster };
  if (verdict.kind === "defaulted") return verdict;
  const fields = [...new Set(verdict.issues.map((it) => it.path))].join(", ");
  const where = fields ? ` on: ${fields}` : "";
  const reason = `the resource failed admission validation${where} (see the operator logs for details)`;
  return { kind: "rejected", reason, errors: [...new Set(verdict.issues.map(formatFieldIssue))] };
}
