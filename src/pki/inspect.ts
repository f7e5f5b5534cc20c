import type { X509Certificate } from "node:crypto";
import type { Secret } from "../api/generated/kubernetes.ts";
import type { LeafRequest, ObservedCertificate } from "../build/certificates.ts";
import { certificateFacts, parseCertificates } from "./certificate.ts";
import { checkChain } from "./chain.ts";
import { parsePrivateKey } from "./private-key.ts";

/** Text of a Secret's key; `undefined` when it is absent or empty. */
export function secretText(secret: Secret, key: string): string | undefined {
  const value = secret.data?.[key];
  return value ? Buffer.from(value, "base64").toString("utf8") : undefined;
}

/** Reads the Secret of a certificate authority (`ca.crt`, perhaps `ca.key`). */
export function inspectAuthority(secret: Secret | undefined): ObservedCertificate {
  if (!secret) return { kind: "absent" };
  const text = secretText(secret, "ca.crt");
  if (!text) return { kind: "unreadable", reason: "it has no ca.crt" };
  return guarded(() => {
    const [certificate] = parseCertificates(text, "ca.crt");
    if (!certificate.ca) return { kind: "unreadable", reason: "ca.crt is not the certificate of an authority" };
    const key = secretText(secret, "ca.key");
    const problem = key ? checkKey(certificate, key, "ca.key") : null;
    if (problem) return { kind: "unreadable", reason: problem };
    return { kind: "present", ...certificateFacts(certificate), hasKey: key !== undefined };
  });
}

/** Reads the Secret of a leaf (`tls.crt`, `tls.key`) and checks it against its authority, if that can be read. */
export function inspectLeaf(
  secret: Secret | undefined,
  authority: Secret | undefined,
  usage: LeafRequest["usage"],
  now: number,
): ObservedCertificate {
  if (!secret) return { kind: "absent" };
  const text = secretText(secret, "tls.crt");
  const key = secretText(secret, "tls.key");
  if (!text || !key) return { kind: "unreadable", reason: `it has no ${text ? "tls.key" : "tls.crt"}` };
  return guarded(() => {
    const chain = parseCertificates(text, "tls.crt");
    const mismatch = checkKey(chain[0], key, "tls.key");
    if (mismatch) return { kind: "unreadable", reason: mismatch };
    const roots = readAuthorities(authority);
    const problem = roots ? checkChain(chain, roots, usage, now) : null;
    return { kind: "present", ...certificateFacts(chain[0]), hasKey: true, ...(problem ? { problem } : {}) };
  });
}

/** The authorities in a Secret; `undefined` when they cannot be read, which its own inspection reports. */
function readAuthorities(secret: Secret | undefined): X509Certificate[] | undefined {
  const text = secret && secretText(secret, "ca.crt");
  if (!text) return undefined;
  try {
    return parseCertificates(text, "ca.crt");
  } catch {
    return undefined;
  }
}

function checkKey(certificate: X509Certificate, pem: string, what: string): string | null {
  return certificate.checkPrivateKey(parsePrivateKey(pem, what)) ? null : `${what} does not belong to its certificate`;
}

function guarded(read: () => ObservedCertificate): ObservedCertificate {
  try {
    return read();
  } catch (error) {
    return { kind: "unreadable", reason: error instanceof Error ? error.message : String(error) };
  }
}
