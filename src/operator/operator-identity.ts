import { X509Certificate } from "node:crypto";
import { publicKeyFingerprint } from "../pki/certificate.ts";
import { createClientIdentity } from "../pki/issue.ts";

/** What the operator proves itself with to instances; new at each start, never written anywhere. */
export interface OperatorIdentity {
  certificate: string;
  privateKey: string;
  /** Lower-case hex SHA-256 of the public key, published in the status of each cluster. */
  fingerprint: string;
}

/** Makes the client certificate of this process. `hostName` becomes its common name. */
export async function createOperatorIdentity(hostName: string, now: number): Promise<OperatorIdentity> {
  const pair = await createClientIdentity(hostName || "cloudnative-pg-operator", now);
  return { ...pair, fingerprint: publicKeyFingerprint(new X509Certificate(pair.certificate)) };
}
