import { createPrivateKey, sign } from "node:crypto";
import { tokenFailure } from "./token-source.ts";

/** A JSON Web Token signed by RS256, with which a holder of a key asks an issuer for an access token. */
export function signAssertion(
  header: Readonly<Record<string, string>>,
  claims: Readonly<Record<string, unknown>>,
  keyPem: string,
): string {
  const text = [{ alg: "RS256", typ: "JWT", ...header }, claims].map(encode).join(".");
  try {
    const signature = sign("sha256", Buffer.from(text), createPrivateKey(keyPem));
    return `${text}.${signature.toString("base64url")}`;
  } catch (error) {
    throw tokenFailure("denied", "the private key of the credentials cannot be used", error);
  }
}

function encode(part: unknown): string {
  return Buffer.from(JSON.stringify(part)).toString("base64url");
}
