import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject } from "node:crypto";
import { promisify } from "node:util";

/** A new P-256 key as PEM `EC PRIVATE KEY`, the form that all peers of the API read. */
export async function generatePrivateKey(): Promise<string> {
  const { privateKey } = await promisify(generateKeyPair)("ec", { namedCurve: "P-256" });
  return formatPrivateKey(privateKey);
}

/** An elliptic-curve key as PEM `EC PRIVATE KEY` (SEC 1). */
export function formatPrivateKey(key: KeyObject): string {
  return key.export({ type: "sec1", format: "pem" }).toString();
}

/** Reads a PEM private key; `what` names it in the error. */
export function parsePrivateKey(pem: string, what: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (error) {
    throw new Error(`${what} is not a PEM private key`, { cause: error });
  }
}

/** DER of the SubjectPublicKeyInfo that belongs to a private key. */
export function publicKeyDer(key: KeyObject): Buffer {
  return createPublicKey(key).export({ type: "spki", format: "der" });
}
