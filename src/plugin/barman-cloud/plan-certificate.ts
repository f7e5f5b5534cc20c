import type { ObservedCertificate } from "../../build/certificates.ts";

/** Label value that marks a Secret which the plugin made and may make anew. */
export const managedBy = "plugin-barman-cloud";

const day = 86_400_000;
/** As the usual certificates of the plugin: 90 days, renewed in the last 15. */
export const certificateDays = 90;
const renewalMs = 15 * day;
/** The authority behind both lives long: a peer that missed its renewal would trust nothing any more. */
export const authorityDays = 3650;

/** Name of the Secret with the authority of a plugin's Service. */
export function authoritySecret(service: string): string {
  return `${service}-ca`;
}

export type CertificateStep =
  | { kind: "keep" }
  | { kind: "create"; reason: string }
  | { kind: "renew"; reason: string }
  | { kind: "refuse"; reason: string };

/**
 * Decides what one Secret of the plugin's TLS needs. A Secret that somebody else maintains is used as it is, for as long as it
 * is of use.
 */
export function planCertificate(
  found: ObservedCertificate,
  secret: { name: string; ours: boolean },
  nowMs: number,
  dnsNames: readonly string[],
): CertificateStep {
  if (found.kind === "absent") return { kind: "create", reason: `Secret ${secret.name} does not exist` };
  if (found.kind === "unreadable") {
    if (secret.ours) return { kind: "create", reason: `Secret ${secret.name} cannot be used: ${found.reason}` };
    return {
      kind: "refuse",
      reason: `Secret ${secret.name} cannot be used: ${found.reason}; repair it, or delete it to have it made`,
    };
  }
  if (!secret.ours) return { kind: "keep" };
  if (found.problem) return { kind: "renew", reason: `Secret ${secret.name} ${found.problem}` };
  if (found.notAfter - nowMs < renewalMs) return { kind: "renew", reason: `Secret ${secret.name} expires soon` };
  const named = dnsNames.every((name) => found.dnsNames.includes(name));
  return named
    ? { kind: "keep" }
    : { kind: "renew", reason: `Secret ${secret.name} does not carry the Service's name` };
}
