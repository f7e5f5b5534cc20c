import { createHash, type KeyObject, sign, type X509Certificate } from "node:crypto";
import {
  bitString,
  boolean,
  explicit,
  implicit,
  integer,
  nullValue,
  objectIdentifier,
  octetString,
  readElements,
  sequence,
  set,
  time,
  utf8String,
} from "./der.ts";
import { publicKeyDer } from "./private-key.ts";

/** Everything that goes into a certificate. Names are DER, so that an issuer's is copied byte by byte. */
export interface CertificateParts {
  serial: Uint8Array;
  subject: Uint8Array;
  issuer: Uint8Array;
  notBefore: Date;
  notAfter: Date;
  /** Its public half is what the certificate is about. */
  subjectKey: KeyObject;
  signingKey: KeyObject;
  extensions: readonly Uint8Array[];
}

const oids = {
  commonName: "2.5.4.3",
  organizationalUnit: "2.5.4.11",
  subjectKeyIdentifier: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAltName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  authorityKeyIdentifier: "2.5.29.35",
  extendedKeyUsage: "2.5.29.37",
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
  rsaWithSha256: "1.2.840.113549.1.1.11",
} as const;

/** Object identifiers of the two purposes that leaf certificates have. */
export const purposes = { server: "1.3.6.1.5.5.7.3.1", client: "1.3.6.1.5.5.7.3.2" } as const;

/** Signs a version 3 certificate (RFC 5280) and gives it as PEM. */
export function signCertificate(parts: CertificateParts): string {
  const algorithm = signatureAlgorithm(parts.signingKey);
  const body = sequence(
    explicit(0, integer(Buffer.from([2]))),
    integer(parts.serial),
    algorithm,
    parts.issuer,
    sequence(time(parts.notBefore), time(parts.notAfter)),
    parts.subject,
    publicKeyDer(parts.subjectKey),
    explicit(3, sequence(...parts.extensions)),
  );
  const certificate = sequence(body, algorithm, bitString(sign("sha256", body, parts.signingKey)));
  const lines = certificate.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

/** A name with a common name and perhaps an organizational unit. */
export function encodeName(subject: { commonName: string; organizationalUnit?: string }): Buffer {
  const part = (oid: string, text: string) => set(sequence(objectIdentifier(oid), utf8String(text)));
  return sequence(
    ...(subject.organizationalUnit ? [part(oids.organizationalUnit, subject.organizationalUnit)] : []),
    part(oids.commonName, subject.commonName),
  );
}

export type KeyUsage = "digitalSignature" | "keyEncipherment" | "keyAgreement" | "keyCertSign";

const keyUsageBit: Record<KeyUsage, number> = {
  digitalSignature: 0,
  keyEncipherment: 2,
  keyAgreement: 4,
  keyCertSign: 5,
};

export function keyUsageExtension(...usages: readonly KeyUsage[]): Buffer {
  const bits = usages.map((usage) => keyUsageBit[usage]);
  const byte = bits.reduce((value, bit) => value | (0x80 >> bit), 0);
  return extension(oids.keyUsage, bitString(Buffer.from([byte]), 7 - Math.max(...bits)), true);
}

export function purposeExtension(purpose: keyof typeof purposes): Buffer {
  return extension(oids.extendedKeyUsage, sequence(objectIdentifier(purposes[purpose])));
}

export function basicConstraintsExtension(authority: boolean): Buffer {
  return extension(oids.basicConstraints, authority ? sequence(boolean(true)) : sequence(), true);
}

export function dnsNamesExtension(names: readonly string[]): Buffer {
  return extension(oids.subjectAltName, sequence(...names.map((name) => implicit(2, Buffer.from(name, "ascii")))));
}

/** Names a key by the SHA-1 of its public half, the usual way. */
export function subjectKeyExtension(key: KeyObject): Buffer {
  return extension(oids.subjectKeyIdentifier, octetString(keyIdentifier(publicKeyDer(key))));
}

/** Points to the issuer's key by the identifier that the issuer's certificate carries. */
export function authorityKeyExtension(issuer: X509Certificate): Buffer {
  const identifier =
    subjectKeyIdentifier(issuer) ?? keyIdentifier(issuer.publicKey.export({ type: "spki", format: "der" }));
  return extension(oids.authorityKeyIdentifier, sequence(implicit(0, identifier)));
}

/** DER of a certificate's subject, byte by byte. */
export function subjectOf(certificate: X509Certificate): Buffer {
  // version, serial, algorithm, issuer, validity, subject, …
  const subject = bodyOf(certificate)[5];
  if (!subject) throw new Error("the authority's certificate is not of version 3");
  return subject.raw;
}

function subjectKeyIdentifier(certificate: X509Certificate): Buffer | undefined {
  const wrapper = bodyOf(certificate).find(({ tag }) => tag === 0xa3);
  const [list] = wrapper ? readElements(wrapper.content) : [];
  const wanted = objectIdentifier(oids.subjectKeyIdentifier);
  for (const entry of list ? readElements(list.content) : []) {
    const fields = readElements(entry.content);
    const value = fields.at(-1);
    if (fields[0]?.raw.equals(wanted) && value) return readElements(value.content)[0]?.content;
  }
  return undefined;
}

function bodyOf(certificate: X509Certificate) {
  const [whole] = readElements(certificate.raw);
  const [body] = readElements(whole?.content ?? Buffer.alloc(0));
  return readElements(body?.content ?? Buffer.alloc(0));
}

function keyIdentifier(spki: Buffer): Buffer {
  const [whole] = readElements(spki);
  const bits = readElements(whole?.content ?? Buffer.alloc(0))[1];
  // The first content byte counts unused bits and is not part of the key.
  return createHash("sha1")
    .update(bits?.content.subarray(1) ?? Buffer.alloc(0))
    .digest();
}

function extension(oid: string, value: Uint8Array, critical = false): Buffer {
  return sequence(objectIdentifier(oid), ...(critical ? [boolean(true)] : []), octetString(value));
}

function signatureAlgorithm(key: KeyObject): Buffer {
  if (key.asymmetricKeyType === "ec") return sequence(objectIdentifier(oids.ecdsaWithSha256));
  if (key.asymmetricKeyType === "rsa") return sequence(objectIdentifier(oids.rsaWithSha256), nullValue());
  throw new Error(`an authority's key of type ${key.asymmetricKeyType} cannot sign here: provide an EC or RSA key`);
}
