import type { X509Certificate } from "node:crypto";
import type { LeafRequest } from "../build/certificates.ts";
import { certificateFacts } from "./certificate.ts";
import { purposes } from "./x509.ts";

const anyPurpose = "2.5.29.37.0";

/** Why a chain (leaf first, then intermediates) is not good for a purpose under the given authorities, or null. Host names are not looked at. */
export function checkChain(
  [leaf, ...intermediates]: readonly [X509Certificate, ...X509Certificate[]],
  authorities: readonly X509Certificate[],
  usage: LeafRequest["usage"],
  now: number,
): string | null {
  const allowed = leaf.keyUsage as string[] | undefined;
  if (allowed && allowed.length > 0 && !allowed.includes(purposes[usage]) && !allowed.includes(anyPurpose))
    return `is not meant for ${usage} authentication`;
  let current = leaf;
  for (let depth = 0; depth <= intermediates.length; depth++) {
    const validity = checkValidity(current, now);
    if (validity) return validity;
    const root = authorities.find((candidate) => issued(candidate, current));
    if (root) return checkValidity(root, now);
    const issuer = intermediates.find((candidate) => candidate !== current && issued(candidate, current));
    if (!issuer) break;
    current = issuer;
  }
  return "is not signed by its certificate authority";
}

function issued(issuer: X509Certificate, subject: X509Certificate): boolean {
  return issuer.ca && subject.checkIssued(issuer) && subject.verify(issuer.publicKey);
}

function checkValidity(certificate: X509Certificate, now: number): string | null {
  const { notBefore, notAfter } = certificateFacts(certificate);
  const subject = certificate.subject.replaceAll("\n", ", ");
  if (now < notBefore) return `has a chain with a certificate that is not valid yet (${subject})`;
  return now > notAfter ? `has a chain with an expired certificate (${subject})` : null;
}
