import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from "node:crypto";
import { isIPv4 } from "node:net";
import {
  bitString,
  integer,
  objectIdentifier,
  octetString,
  sequence,
  set,
  tagged,
  taggedPrimitive,
  time,
  truth,
  utf8String,
} from "./der.ts";

// A local cluster that is kept for years must still start.
const lifetimeMs = 10 * 365 * 24 * 3600 * 1000;
// Clocks of machines and containers differ a little.
const toleranceMs = 3600 * 1000;

const oid = {
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
  commonName: "2.5.4.3",
  organization: "2.5.4.10",
  subjectKeyIdentifier: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAltName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  authorityKeyIdentifier: "2.5.29.35",
  extendedKeyUsage: "2.5.29.37",
  serverAuth: "1.3.6.1.5.5.7.3.1",
  clientAuth: "1.3.6.1.5.5.7.3.2",
} as const;

/** A certificate and its private key, both PEM. */
export interface KeyPair {
  certificate: string;
  key: string;
}

export interface LeafRequest {
  commonName: string;
  /** Kubernetes groups, for client certificates. */
  organizations?: readonly string[];
  dnsNames?: readonly string[];
  /** IPv4 addresses. */
  ipAddresses?: readonly string[];
}

/** Signs certificates for the components of one local cluster. */
export interface Authority extends KeyPair {
  issue(request: LeafRequest): KeyPair;
}

/** Creates a certificate authority with a new key. */
export function createAuthority(commonName: string): Authority {
  const keys = generateKeys();
  const name = distinguishedName(commonName, []);
  const identifier = keyIdentifier(keys.publicKey);
  const certificate = createCertificate({
    issuer: name,
    subject: name,
    publicKey: keys.publicKey,
    signingKey: keys.privateKey,
    extensions: [
      extension(oid.basicConstraints, sequence(truth()), true),
      // keyCertSign and cRLSign.
      extension(oid.keyUsage, bitString(Buffer.from([0b0000_0110]), 1), true),
      extension(oid.subjectKeyIdentifier, octetString(identifier)),
    ],
  });
  return openAuthority(commonName, { certificate, key: privatePem(keys.privateKey) });
}

/** The authority that was created with that name and wrote that key pair. */
export function openAuthority(commonName: string, pair: KeyPair): Authority {
  const signingKey = createPrivateKey(pair.key);
  const identifier = keyIdentifier(createPublicKey(signingKey));
  return { ...pair, issue: (request) => issue(distinguishedName(commonName, []), identifier, signingKey, request) };
}

/** The key pair that signs service account tokens, both PEM. */
export function createSigningKey(): { privateKey: string; publicKey: string } {
  const keys = generateKeys();
  return {
    privateKey: privatePem(keys.privateKey),
    publicKey: keys.publicKey.export({ format: "pem", type: "spki" }).toString(),
  };
}

function issue(issuer: Buffer, issuerIdentifier: Buffer, signingKey: KeyObject, request: LeafRequest): KeyPair {
  const keys = generateKeys();
  const names = alternativeNames(request);
  const certificate = createCertificate({
    issuer,
    subject: distinguishedName(request.commonName, request.organizations ?? []),
    publicKey: keys.publicKey,
    signingKey,
    extensions: [
      extension(oid.basicConstraints, sequence(), true),
      // digitalSignature.
      extension(oid.keyUsage, bitString(Buffer.from([0b1000_0000]), 7), true),
      extension(oid.extendedKeyUsage, sequence(objectIdentifier(oid.serverAuth), objectIdentifier(oid.clientAuth))),
      extension(oid.authorityKeyIdentifier, sequence(taggedPrimitive(0, issuerIdentifier))),
      ...(names.length === 0 ? [] : [extension(oid.subjectAltName, sequence(...names))]),
    ],
  });
  return { certificate, key: privatePem(keys.privateKey) };
}

interface CertificateParts {
  issuer: Buffer;
  subject: Buffer;
  publicKey: KeyObject;
  signingKey: KeyObject;
  extensions: Buffer[];
}

function createCertificate(parts: CertificateParts): string {
  const now = Date.now();
  const algorithm = sequence(objectIdentifier(oid.ecdsaWithSha256));
  const body = sequence(
    tagged(0, integer(Buffer.from([2]))),
    integer(randomBytes(16)),
    algorithm,
    parts.issuer,
    sequence(time(new Date(now - toleranceMs)), time(new Date(now + lifetimeMs))),
    parts.subject,
    parts.publicKey.export({ format: "der", type: "spki" }),
    tagged(3, sequence(...parts.extensions)),
  );
  const signed = sequence(body, algorithm, bitString(sign("sha256", body, parts.signingKey)));
  const lines = signed.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

function distinguishedName(commonName: string, organizations: readonly string[]): Buffer {
  const attribute = (type: string, value: string) => set(sequence(objectIdentifier(type), utf8String(value)));
  return sequence(
    ...organizations.map((organization) => attribute(oid.organization, organization)),
    attribute(oid.commonName, commonName),
  );
}

function alternativeNames({ dnsNames = [], ipAddresses = [] }: LeafRequest): Buffer[] {
  return [
    ...dnsNames.map((name) => taggedPrimitive(2, Buffer.from(name))),
    ...ipAddresses.map((address) => {
      if (!isIPv4(address)) throw new Error(`${address} is not an IPv4 address`);
      return taggedPrimitive(7, Buffer.from(address.split(".").map(Number)));
    }),
  ];
}

function extension(type: string, value: Buffer, critical = false): Buffer {
  return sequence(objectIdentifier(type), ...(critical ? [truth()] : []), octetString(value));
}

function keyIdentifier(publicKey: KeyObject): Buffer {
  return createHash("sha1")
    .update(publicKey.export({ format: "der", type: "spki" }))
    .digest();
}

function generateKeys(): { publicKey: KeyObject; privateKey: KeyObject } {
  return generateKeyPairSync("ec", { namedCurve: "P-256" });
}

function privatePem(key: KeyObject): string {
  return key.export({ format: "pem", type: "pkcs8" }).toString();
}
