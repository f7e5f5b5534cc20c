import { createHash, X509Certificate } from "node:crypto";
import { type HttpAnswer, textAnswer } from "./http-answer.ts";

/** Fingerprint of a certificate's public key: SHA-256 of the DER form, lower-case hexadecimal. */
export function publicKeyFingerprint(certificate: Uint8Array): string {
  const key = new X509Certificate(certificate).publicKey.export({ type: "spki", format: "der" });
  return createHash("sha256").update(key).digest("hex");
}

/** Refuses a request that is not the operator's; `undefined` lets it pass (reference: instance manager §6.1). */
export function checkOperator(
  peerCertificate: Uint8Array | undefined,
  expectedFingerprint: string | undefined,
): HttpAnswer | undefined {
  if (!peerCertificate) return textAnswer(401, "client certificate required");
  if (!expectedFingerprint) return textAnswer(503, "operator certificate not registered");
  if (publicKeyFingerprint(peerCertificate) !== expectedFingerprint) {
    return textAnswer(503, "operator certificate not recognized");
  }
  return undefined;
}
