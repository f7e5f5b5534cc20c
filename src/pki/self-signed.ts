import { randomBytes } from "node:crypto";
import type { KeyPair } from "../build/certificate-secrets.ts";
import type { LeafRequest } from "../build/certificates.ts";
import type { Validity } from "./issue.ts";
import { generatePrivateKey, parsePrivateKey } from "./private-key.ts";
import {
  basicConstraintsExtension,
  dnsNamesExtension,
  encodeName,
  keyUsageExtension,
  purposeExtension,
  signCertificate,
  subjectKeyExtension,
} from "./x509.ts";

const clockToleranceMs = 5 * 60_000;
const dayMs = 86_400_000;

/** A certificate that peers trust by itself, with a new key. */
export async function createSelfSigned(leaf: LeafRequest, validity: Validity): Promise<KeyPair> {
  const privateKey = await generatePrivateKey();
  return { privateKey, certificate: renewSelfSigned(privateKey, leaf, validity) };
}

/**
 * The same for an existing key. It also counts as an authority, so that a peer which still holds the previous certificate
 * accepts the new one: both bear the same name and key, and the old one vouches for the new one.
 */
export function renewSelfSigned(privateKey: string, leaf: LeafRequest, validity: Validity): string {
  const key = parsePrivateKey(privateKey, "tls.key");
  const name = encodeName({ commonName: leaf.commonName });
  const start = validity.now - clockToleranceMs;
  return signCertificate({
    serial: randomBytes(16),
    issuer: name,
    subject: name,
    notBefore: new Date(start),
    notAfter: new Date(start + (validity.durationDays > 0 ? validity.durationDays : 90) * dayMs),
    subjectKey: key,
    signingKey: key,
    extensions: [
      keyUsageExtension("digitalSignature", "keyEncipherment", "keyCertSign"),
      purposeExtension(leaf.usage),
      basicConstraintsExtension(true),
      subjectKeyExtension(key),
      ...(leaf.dnsNames.length > 0 ? [dnsNamesExtension(leaf.dnsNames)] : []),
    ],
  });
}
