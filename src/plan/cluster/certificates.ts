import { type CertificatePlan, planCertificates } from "../../build/certificates.ts";
import { sameJson } from "../../build/same-json.ts";
import type { Problem } from "./auxiliary.ts";
import type { Pass } from "./pass.ts";
import { usesAutomatedIntegration } from "./resource-versions.ts";

/** What the builders' rules say about the certificates as they were seen. */
export function certificatePlan(pass: Pass): CertificatePlan {
  const { certificates, operator, poolers } = pass.observed;
  const pooler = poolers.some(usesAutomatedIntegration);
  return planCertificates(pass.cluster, certificates, pass.now.getTime(), operator.context, { pooler });
}

/** Creates and renews the cluster's certificates; what the user has to provide is told. */
export function planClusterCertificates(pass: Pass): Problem[] {
  const plan = certificatePlan(pass);
  for (const action of plan.actions) {
    pass.actions.push({ kind: "issueCertificate", certificate: action, reason: action.reason });
  }
  const expiring = plan.warnings.filter((it) => it.reason === "SecretIsExpiring");
  for (const warning of isTimeToWarn(pass, plan) ? expiring : []) {
    pass.actions.push({
      kind: "event",
      type: "Warning",
      event: warning.reason,
      message: warning.message,
      reason: warning.message,
    });
  }
  const warnings = plan.warnings.filter((it) => !expiring.includes(it));
  return plan.failures.map((message, index) => {
    const warning = warnings[index] ?? warnings[0];
    return warning
      ? { event: warning.reason, message, eventMessage: warning.message }
      : { event: "InvalidCertificate", message };
  });
}

const hourMs = 3_600_000;
/** A healthy cluster is looked at once a minute, so the first two minutes of an hour hold at least one pass. */
const warningMs = 120_000;

/** What comes to its end is told when that is news, and then once an hour: not in every pass. */
function isTimeToWarn(pass: Pass, plan: CertificatePlan): boolean {
  const known = pass.cluster.status?.certificates?.expirations;
  return !sameJson(known ?? {}, plan.status.expirations ?? {}) || pass.now.getTime() % hourMs < warningMs;
}
