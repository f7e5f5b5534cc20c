import { type CertificatePlan, planCertificates } from "../../build/certificates.ts";
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
  const told = new Set(plan.warnings.filter((it) => it.reason === "SecretIsExpiring"));
  for (const warning of told) {
    pass.actions.push({
      kind: "event",
      type: "Warning",
      event: warning.reason,
      message: warning.message,
      reason: warning.message,
    });
  }
  const warnings = plan.warnings.filter((it) => !told.has(it));
  return plan.failures.map((message, index) => {
    const warning = warnings[index] ?? warnings[0];
    return warning
      ? { event: warning.reason, message, eventMessage: warning.message }
      : { event: "InvalidCertificate", message };
  });
}
