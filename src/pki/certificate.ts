import { createHash, X509Certificate } from "node:crypto";

const block = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

/** Reads all certificates of a PEM text, first one first; `what` names the text in the error. */
export function parseCertificates(pem: string, what: string): [X509Certificate, ...X509Certificate[]] {
  const blocks = pem.match(block) ?? [];
  let certificates: X509Certificate[];
  try {
    certificates = blocks.map((text) => new X509Certificate(text));
  } catch (error) {
    throw new Error(`${what} holds a malformed certificate`, { cause: error });
  }
  const [first, ...rest] = certificates;
  if (!first) throw new Error(`${what} holds no PEM certificate`);
  return [first, ...rest];
}

/** What the renewal rules need to know of a certificate; times in milliseconds since the epoch. */
export function certificateFacts(certificate: X509Certificate): {
  notBefore: number;
  notAfter: number;
  dnsNames: string[];
} {
  return {
    notBefore: certificate.validFromDate.getTime(),
    notAfter: certificate.validToDate.getTime(),
    dnsNames: dnsNames(certificate),
  };
}

/** Lower-case hex SHA-256 of a certificate's SubjectPublicKeyInfo. */
export function publicKeyFingerprint(certificate: X509Certificate): string {
  const der = certificate.publicKey.export({ type: "spki", format: "der" });
  return createHash("sha256").update(der).digest("hex");
}

function dnsNames(certificate: X509Certificate): string[] {
  return (certificate.subjectAltName ?? "")
    .split(", ")
    .filter((entry) => entry.startsWith("DNS:"))
    .map((entry) => entry.slice("DNS:".length));
}
