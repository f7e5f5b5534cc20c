import type { Secret } from "../api/generated/kubernetes.ts";
import type { KeyPair } from "../build/certificate-secrets.ts";
import type { CertificateAction } from "../build/certificates.ts";
import { secretText } from "./inspect.ts";
import { createAuthority, createLeaf, renewAuthority, renewLeaf, type Validity } from "./issue.ts";

/** What a certificate action needs: the Secret of the authority that signs, and the one that is renewed. */
export interface IssueMaterial {
  authority?: Secret | undefined;
  current?: Secret | undefined;
}

/** What came out: a new pair for a Secret to be created, or a certificate for the key that a Secret has. */
export type Issued = { kind: "pair"; pair: KeyPair } | { kind: "certificate"; certificate: string };

/** Issues what an action asks for. Throws, naming the Secret, when its material is incomplete. */
export async function issueCertificate(
  action: CertificateAction,
  material: IssueMaterial,
  validity: Validity,
): Promise<Issued> {
  switch (action.kind) {
    case "createAuthority":
      return { kind: "pair", pair: await createAuthority(action, validity) };
    case "renewAuthority": {
      const authority = readAuthority(material.current, action.secret);
      return { kind: "certificate", certificate: renewAuthority(authority, validity) };
    }
    case "createLeaf": {
      const authority = readAuthority(material.authority, action.authority);
      return { kind: "pair", pair: await createLeaf(authority, action.leaf, validity) };
    }
    case "renewLeaf": {
      const authority = readAuthority(material.authority, action.authority);
      const key = required(material.current, action.secret, "tls.key");
      return { kind: "certificate", certificate: renewLeaf(authority, key, action.leaf, validity) };
    }
  }
}

function readAuthority(secret: Secret | undefined, name: string): KeyPair {
  return { certificate: required(secret, name, "ca.crt"), privateKey: required(secret, name, "ca.key") };
}

function required(secret: Secret | undefined, name: string, key: string): string {
  const text = secret && secretText(secret, key);
  if (!text) throw new Error(`secret ${name} has no ${key}, which is needed to issue a certificate`);
  return text;
}
