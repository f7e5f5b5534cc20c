import { randomBytes } from "node:crypto";
import type { KeyPair } from "../build/certificate-secrets.ts";
import type { LeafRequest } from "../build/certificates.ts";
import { parseCertificates } from "./certificate.ts";
import { generatePrivateKey, parsePrivateKey } from "./private-key.ts";
import {
  authorityKeyExtension,
  basicConstraintsExtension,
  dnsNamesExtension,
  encodeName,
  keyUsageExtension,
  purposeExtension,
  signCertificate,
  subjectKeyExtension,
  subjectOf,
} from "./x509.ts";

/** How long a certificate is to last, from now (milliseconds since the epoch). */
export interface Validity {
  now: number;
  /** Below one falls back to 90. */
  durationDays: number;
}

/** A new self-signed certificate authority with a key of its own. */
export async function createAuthority(
  subject: { commonName: string; organizationalUnit: string },
  validity: Validity,
): Promise<KeyPair> {
  const privateKey = await generatePrivateKey();
  return { privateKey, certificate: selfSignAuthority(privateKey, encodeName(subject), validity) };
}

/** The authority's certificate with the same key, subject and usage, and new dates and serial. */
export function renewAuthority(authority: KeyPair, validity: Validity): string {
  const [before] = parseCertificates(authority.certificate, "ca.crt");
  return selfSignAuthority(authority.privateKey, subjectOf(before), validity);
}

/** A new certificate, with a new key, signed by the authority. */
export async function createLeaf(authority: KeyPair, leaf: LeafRequest, validity: Validity): Promise<KeyPair> {
  const privateKey = await generatePrivateKey();
  return { privateKey, certificate: renewLeaf(authority, privateKey, leaf, validity) };
}

/** A certificate for an existing private key, signed by the authority. */
export function renewLeaf(authority: KeyPair, privateKey: string, leaf: LeafRequest, validity: Validity): string {
  const [issuer] = parseCertificates(authority.certificate, "ca.crt");
  return signCertificate({
    serial: newSerial(),
    issuer: subjectOf(issuer),
    subject: encodeName({ commonName: leaf.commonName }),
    ...period(validity),
    subjectKey: parsePrivateKey(privateKey, "tls.key"),
    signingKey: parsePrivateKey(authority.privateKey, "ca.key"),
    extensions: [
      keyUsageExtension("digitalSignature", "keyEncipherment", "keyAgreement"),
      purposeExtension(leaf.usage),
      basicConstraintsExtension(false),
      authorityKeyExtension(issuer),
      ...(leaf.dnsNames.length > 0 ? [dnsNamesExtension(leaf.dnsNames)] : []),
    ],
  });
}

/** A self-signed client certificate that outlives its process; trusted by the fingerprint of its public key alone. */
export async function createClientIdentity(commonName: string, now: number): Promise<KeyPair> {
  const privateKey = await generatePrivateKey();
  const key = parsePrivateKey(privateKey, "client key");
  const name = encodeName({ commonName });
  const certificate = signCertificate({
    serial: newSerial(),
    subject: name,
    issuer: name,
    notBefore: new Date(now - clockTolerance),
    // The date that means "no end" (RFC 5280).
    notAfter: new Date("9999-12-31T23:59:59Z"),
    subjectKey: key,
    signingKey: key,
    extensions: [keyUsageExtension("digitalSignature"), purposeExtension("client")],
  });
  return { privateKey, certificate };
}

const clockTolerance = 5 * 60_000;
const day = 86_400_000;

function selfSignAuthority(privateKey: string, subject: Buffer, validity: Validity): string {
  const key = parsePrivateKey(privateKey, "ca.key");
  return signCertificate({
    serial: newSerial(),
    subject,
    issuer: subject,
    ...period(validity),
    subjectKey: key,
    signingKey: key,
    extensions: [keyUsageExtension("keyCertSign"), basicConstraintsExtension(true), subjectKeyExtension(key)],
  });
}

function period({ now, durationDays }: Validity): { notBefore: Date; notAfter: Date } {
  const start = now - clockTolerance;
  return { notBefore: new Date(start), notAfter: new Date(start + (durationDays > 0 ? durationDays : 90) * day) };
}

/** 128 random bits, never zero in practice. */
function newSerial(): Buffer {
  return randomBytes(16);
}
