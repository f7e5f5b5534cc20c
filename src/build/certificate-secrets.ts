import { clusterName } from "../api/cluster-facts.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { OwnerReference, Secret } from "../api/generated/kubernetes.ts";
import { labels } from "../api/labels.ts";
import { childNames } from "../api/names.ts";
import type { BuildContext } from "./context.ts";
import { encodeData } from "./credentials.ts";
import { childMetadata, managedByLabel } from "./metadata.ts";

/** A certificate with its private key, both PEM. */
export interface KeyPair {
  certificate: string;
  privateKey: string;
}

/** The Secret of a cluster's certificate authority. */
export function buildAuthoritySecret(cluster: Cluster, name: string, pair: KeyPair, context: BuildContext): Secret {
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: childMetadata(cluster, context, { name, labels: managedByLabel }),
    type: "Opaque",
    data: encodeData({ "ca.crt": pair.certificate, "ca.key": pair.privateKey }),
  };
}

/** The Secret of a certificate that a cluster's authority signed. */
export function buildLeafSecret(cluster: Cluster, name: string, pair: KeyPair, context: BuildContext): Secret {
  const reload = name === childNames(clusterName(cluster)).pooler;
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: childMetadata(cluster, context, {
      name,
      labels: { ...managedByLabel, ...(reload ? { [labels.reload]: "true" } : {}) },
    }),
    type: "kubernetes.io/tls",
    data: encodeData({ "tls.crt": pair.certificate, "tls.key": pair.privateKey }),
  };
}

/** Body of the merge patch that renews a certificate and leaves its key alone. */
export function renewalPatch(kind: "authority" | "leaf", certificate: string): { data: Record<string, string> } {
  return { data: encodeData({ [kind === "authority" ? "ca.crt" : "tls.crt"]: certificate }) };
}

/** A Secret of the operator itself, owned by its Deployment. */
export function buildOperatorSecret(
  kind: "authority" | "leaf",
  name: string,
  namespace: string,
  pair: KeyPair,
  owner: OwnerReference | undefined,
): Secret {
  const [certificate, key] = kind === "authority" ? ["ca.crt", "ca.key"] : ["tls.crt", "tls.key"];
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name, namespace, labels: managedByLabel, ...(owner ? { ownerReferences: [owner] } : {}) },
    type: kind === "authority" ? "Opaque" : "kubernetes.io/tls",
    data: encodeData({ [certificate as string]: pair.certificate, [key as string]: pair.privateKey }),
  };
}
