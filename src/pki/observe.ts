import { clusterName, secretNames } from "../api/cluster-facts.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { Secret } from "../api/generated/kubernetes.ts";
import { childNames } from "../api/names.ts";
import type { ObservedCertificate } from "../build/certificates.ts";
import { inspectAuthority, inspectLeaf } from "./inspect.ts";

/** Names of the Secrets that `observeCertificates` wants to see. */
export function certificateSecretNames(cluster: Cluster): string[] {
  const names = secretNames(cluster);
  return [...new Set([names.serverCa, names.serverTls, names.clientCa, names.replicationTls, names.pooler])];
}

/** What the planner of certificates is told about a cluster's Secrets; absent ones are missing from `secrets`. */
export function observeCertificates(
  cluster: Cluster,
  secrets: ReadonlyMap<string, Secret>,
  now: number,
): Map<string, ObservedCertificate> {
  const names = secretNames(cluster);
  const serverCa = secrets.get(names.serverCa);
  const clientCa = secrets.get(names.clientCa);
  const observed = new Map<string, ObservedCertificate>();
  observed.set(names.serverCa, inspectAuthority(serverCa));
  observed.set(names.clientCa, inspectAuthority(clientCa));
  // A Secret of the user's may play several parts: what was seen as an authority stays that.
  const addLeaf = (name: string, authority: Secret | undefined, usage: "server" | "client") => {
    const found = inspectLeaf(secrets.get(name), authority, usage, now);
    if (!observed.has(name)) observed.set(name, found);
    else if (found.kind === "unreadable" || (found.kind === "present" && found.problem)) observed.set(name, found);
  };
  addLeaf(names.serverTls, serverCa, "server");
  addLeaf(names.replicationTls, clientCa, "client");
  addLeaf(childNames(clusterName(cluster)).pooler, clientCa, "client");
  return observed;
}
