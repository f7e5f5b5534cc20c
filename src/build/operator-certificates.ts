import { type CertificateAction, checkExpiry, type LeafRequest, type ObservedCertificate } from "./certificates.ts";
import type { BuildContext } from "./context.ts";

/** Names of the Secrets and of the Service behind the webhook server. */
export const operatorCertificateNames = {
  authority: "cnpg-ca-secret",
  webhook: "cnpg-webhook-cert",
  service: "cnpg-webhook-service",
} as const;

/** Decides what the webhook server's certificates need. Throws when a Secret is there but cannot be read. */
export function planOperatorCertificates(
  observed: { authority: ObservedCertificate; webhook: ObservedCertificate },
  now: number,
  context: BuildContext,
): CertificateAction[] {
  const { authority, webhook, service } = operatorCertificateNames;
  const host = `${service}.${context.operatorNamespace}.svc`;
  const leaf: LeafRequest = { commonName: host, usage: "server", dnsNames: [host] };
  const actions: CertificateAction[] = [];
  const authorityReason = reasonToAct(authority, observed.authority, now, context);
  if (observed.authority.kind === "absent")
    actions.push({
      kind: "createAuthority",
      secret: authority,
      commonName: authority,
      organizationalUnit: context.operatorNamespace,
      reason: `secret ${authority} does not exist`,
    });
  else if (authorityReason) actions.push({ kind: "renewAuthority", secret: authority, reason: authorityReason });
  const leafReason = reasonToAct(webhook, observed.webhook, now, context);
  if (observed.webhook.kind === "absent")
    actions.push({ kind: "createLeaf", secret: webhook, authority, leaf, reason: `secret ${webhook} does not exist` });
  else if (leafReason) actions.push({ kind: "renewLeaf", secret: webhook, authority, leaf, reason: leafReason });
  return actions;
}

function reasonToAct(
  secret: string,
  found: ObservedCertificate,
  now: number,
  context: BuildContext,
): string | undefined {
  if (found.kind === "unreadable")
    throw new Error(
      `secret ${context.operatorNamespace}/${secret} cannot be used: ${found.reason}; delete it to have it made anew`,
    );
  if (found.kind === "absent") return undefined;
  const cause = checkExpiry(found, now, context.expiringThresholdDays) ?? found.problem;
  return cause ? `certificate of ${secret} ${cause}` : undefined;
}
