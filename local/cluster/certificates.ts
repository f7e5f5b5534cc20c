import { existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { authorityName, certificatePaths, createControlPlaneCertificates } from "../control-plane/certificates.ts";
import { type Authority, type KeyPair, openAuthority } from "../pki/authority.ts";
import { keyPairFiles, writePrivateFiles } from "../pki/files.ts";
import { renderKubeconfig } from "../pki/kubeconfig.ts";
import { network, nodeAddresses } from "./addresses.ts";
import type { ClusterFolders } from "./folders.ts";

/** Programs of the control plane that are clients of the API server, with the group that gives them their rights. */
const components = {
  "kube-controller-manager": { commonName: "system:kube-controller-manager", organizations: [] },
  "kube-scheduler": { commonName: "system:kube-scheduler", organizations: [] },
  "kube-proxy": { commonName: "system:kube-proxy", organizations: [] },
  coredns: { commonName: "cnpg-ts-coredns", organizations: ["system:masters"] },
  "local-path-provisioner": { commonName: "cnpg-ts-storage", organizations: ["system:masters"] },
} as const;

export type Component = keyof typeof components;

/** Path of a component's kubeconfig. */
export function componentKubeconfig(folders: ClusterFolders, component: Component): string {
  return join(folders.pki, `${component}.kubeconfig`);
}

/** Creates the cluster's authority and credentials on its first start; they stay for its whole life. */
export function ensureCertificates(folders: ClusterFolders): void {
  if (existsSync(folders.pki)) return;
  // All or nothing: an interrupted start must not leave half of the files.
  const temporary = `${folders.pki}.new`;
  rmSync(temporary, { recursive: true, force: true });
  const { authority } = createControlPlaneCertificates(temporary, [
    "127.0.0.1",
    network.controlPlane,
    network.kubernetesService,
  ]);
  for (const [name, identity] of Object.entries(components)) {
    writePrivateFiles(temporary, {
      [`${name}.kubeconfig`]: insideKubeconfig(name, authority, authority.issue(identity)),
    });
  }
  renameSync(temporary, folders.pki);
}

export interface NodeCredentials {
  certificateFile: string;
  keyFile: string;
  kubeconfig: string;
}

/** Creates a node's certificate, good as client and as server, when it has none yet. */
export function ensureNodeCertificates(folders: ClusterFolders, index: number, folder: string): NodeCredentials {
  const { name, address } = nodeAddresses(index);
  const files = {
    certificateFile: join(folder, "kubelet.crt"),
    keyFile: join(folder, "kubelet.key"),
    kubeconfig: join(folder, "kubelet.kubeconfig"),
  };
  // The kubeconfig is written last.
  if (existsSync(files.kubeconfig)) return files;
  const authority = clusterAuthority(folders);
  const pair = authority.issue({
    commonName: `system:node:${name}`,
    organizations: ["system:nodes"],
    dnsNames: [name],
    ipAddresses: [address],
  });
  writePrivateFiles(folder, keyPairFiles("kubelet", pair));
  writePrivateFiles(folder, { "kubelet.kubeconfig": insideKubeconfig(name, authority, pair) });
  return files;
}

/** Text of the administrator's kubeconfig for use outside of the cluster's namespaces. */
export function adminKubeconfig(folders: ClusterFolders, port: number): string {
  const paths = certificatePaths(folders.pki);
  return renderKubeconfig({
    name: "cnpg-ts",
    server: `https://127.0.0.1:${port}`,
    authority: readFileSync(paths.authority, "utf8"),
    client: {
      certificate: readFileSync(paths.adminCertificate, "utf8"),
      key: readFileSync(paths.adminKey, "utf8"),
    },
  });
}

function clusterAuthority(folders: ClusterFolders): Authority {
  const paths = certificatePaths(folders.pki);
  return openAuthority(authorityName, {
    certificate: readFileSync(paths.authority, "utf8"),
    key: readFileSync(paths.authorityKey, "utf8"),
  });
}

function insideKubeconfig(name: string, authority: Authority, client: KeyPair): string {
  const server = `https://${network.controlPlane}:${network.apiPort}`;
  return renderKubeconfig({ name, server, authority: authority.certificate, client });
}
