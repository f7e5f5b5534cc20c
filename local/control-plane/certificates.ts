import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { type Authority, createAuthority, createSigningKey, type KeyPair } from "../pki/authority.ts";
import { keyPairFiles, writePrivateFiles } from "../pki/files.ts";

/** Names of the files that kube-apiserver and its first client need, all in one folder. */
export const certificateFiles = {
  authority: "ca.crt",
  authorityKey: "ca.key",
  serverCertificate: "apiserver.crt",
  serverKey: "apiserver.key",
  kubeletClientCertificate: "apiserver-kubelet-client.crt",
  kubeletClientKey: "apiserver-kubelet-client.key",
  serviceAccountKey: "service-account.key",
  serviceAccountPublicKey: "service-account.pub",
  adminCertificate: "admin.crt",
  adminKey: "admin.key",
  tokens: "tokens.csv",
} as const;

/** Common name of the authority of a local control plane. */
export const authorityName = "cnpg-ts-local";

export interface ControlPlaneIdentity {
  authority: Authority;
  admin: KeyPair;
  /** Bearer token of a cluster administrator. */
  token: string;
}

/** Creates the authority, all key pairs of the API server, and its administrator's credentials. */
export function createControlPlaneCertificates(folder: string, ipAddresses: readonly string[]): ControlPlaneIdentity {
  const authority = createAuthority(authorityName);
  const server = authority.issue({
    commonName: "kube-apiserver",
    dnsNames: [
      "localhost",
      "kubernetes",
      "kubernetes.default",
      "kubernetes.default.svc",
      "kubernetes.default.svc.cluster.local",
    ],
    ipAddresses,
  });
  const kubeletClient = authority.issue({
    commonName: "kube-apiserver-kubelet-client",
    organizations: ["system:masters"],
  });
  const admin = authority.issue({ commonName: "cnpg-ts-admin", organizations: ["system:masters"] });
  const signing = createSigningKey();
  const token = randomBytes(24).toString("hex");
  writePrivateFiles(folder, {
    ...keyPairFiles("ca", authority),
    ...keyPairFiles("apiserver", server),
    ...keyPairFiles("apiserver-kubelet-client", kubeletClient),
    ...keyPairFiles("admin", admin),
    [certificateFiles.serviceAccountKey]: signing.privateKey,
    [certificateFiles.serviceAccountPublicKey]: signing.publicKey,
    [certificateFiles.tokens]: `${token},cnpg-ts-admin,cnpg-ts-admin,"system:masters"\n`,
  });
  return { authority, admin, token };
}

/** Paths of the certificate files in a folder. */
export function certificatePaths(folder: string): Record<keyof typeof certificateFiles, string> {
  const paths = Object.entries(certificateFiles).map(([key, file]) => [key, join(folder, file)]);
  return Object.fromEntries(paths) as Record<keyof typeof certificateFiles, string>;
}
