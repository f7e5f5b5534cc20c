import type { Cluster } from "../../api/generated/cluster.ts";
import { sameJson } from "../../build/same-json.ts";
import { formatFieldIssue } from "../../schema/admission/field-issue.ts";
import type { AdmissionSettings } from "../../schema/admission/settings.ts";
import { judgeAdmission } from "../admission.ts";

export type DefinitionVerdict =
  | { kind: "admitted" }
  /** Nothing is to be done that only this definition asks for; `errors` name each field that is wrong. */
  | { kind: "heldBack"; reason: string; errors: readonly string[] };

/** This instance manager, as `status.availableArchitectures` would name it. */
export interface ManagerIdentity {
  goArch: string;
  hash: string;
}

/**
 * A pod does not know the operator's settings. Without an image the operator has not seen the definition; what it adds by the
 * others, a pod does not miss.
 */
const settings: AdmissionSettings = {
  defaultPostgresImage: "the operator's choice",
  monitoringQueriesConfigMap: "",
  monitoringQueriesSecret: "",
  includePlugins: [],
};

/**
 * Whether an instance may act by a definition, or whether it came past the webhooks and the operator has not put it right
 * (reference: instance manager §4.1, step 4).
 *
 * Defaults and rules differ from version to version, and who judges by others than the operator would hold back for good what
 * the operator has admitted: before its manager is replaced after an upgrade of the operator, after a step back to an older
 * one, under an operator of somebody else. So a definition is judged only while the operator that works on this cluster has
 * this very manager to send, and therefore these very rules; else the operator's own guard has to do.
 */
export function judgeDefinition(cluster: Cluster, me: ManagerIdentity): DefinitionVerdict {
  const sent = cluster.status?.availableArchitectures?.find(({ goArch }) => goArch === me.goArch);
  if (sent?.hash !== me.hash) return { kind: "admitted" };
  const admission = judgeAdmission(cluster, { settings });
  switch (admission.kind) {
    case "admitted":
      return { kind: "admitted" };
    case "defaulted": {
      const fields = differingFields(cluster.spec, admission.cluster.spec);
      return { kind: "heldBack", reason: `defaults are missing in ${fields.join(", ")}`, errors: [] };
    }
    case "rejected": {
      const fields = [...new Set(admission.issues.map(({ path }) => path))].filter(Boolean);
      const where = fields.length > 0 ? ` on: ${fields.join(", ")}` : "";
      const errors = [...new Set(admission.issues.map(formatFieldIssue))];
      return { kind: "heldBack", reason: `the definition fails validation${where}`, errors };
    }
  }
}

function differingFields(given: Cluster["spec"], wanted: Cluster["spec"]): string[] {
  const names = new Set([...Object.keys(given), ...Object.keys(wanted)] as (keyof Cluster["spec"])[]);
  return [...names].filter((name) => !sameJson(given[name], wanted[name])).map((name) => `spec.${name}`);
}
