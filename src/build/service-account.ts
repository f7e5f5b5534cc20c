import { clusterName } from "../api/cluster-facts.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { ServiceAccount } from "../api/generated/kubernetes.ts";
import { annotations } from "../api/labels.ts";
import { childNames } from "../api/names.ts";
import type { BuildContext } from "./context.ts";
import { childMetadata, managedByLabel } from "./metadata.ts";
import { mergeMetadata } from "./metadata-repair.ts";

/** The ServiceAccount that instances run under; not made when the spec names one of the user's. */
export function buildServiceAccount(
  cluster: Cluster,
  context: BuildContext,
  options: { pullSecret: boolean },
): ServiceAccount {
  const names = childNames(clusterName(cluster));
  const pullSecrets = [
    ...(options.pullSecret ? [names.pull] : []),
    ...(cluster.spec.imagePullSecrets ?? []).map(({ name }) => name),
  ];
  const metadata = childMetadata(cluster, context, {
    name: names.shared,
    labels: managedByLabel,
    annotations: { [annotations.managedSecrets]: JSON.stringify(pullSecrets) },
  });
  const template = cluster.spec.serviceAccountTemplate?.metadata;
  return {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, ...template?.labels },
      annotations: { ...metadata.annotations, ...template?.annotations },
    },
    ...(pullSecrets.length > 0 ? { imagePullSecrets: pullSecrets.map((name) => ({ name })) } : {}),
  };
}

/**
 * The live account brought up to date, or null when it is. Pull secrets that others added stay; those that we added and no
 * longer want go.
 */
export function mergeServiceAccount(live: ServiceAccount, proposed: ServiceAccount): ServiceAccount | null {
  const wanted = (proposed.imagePullSecrets ?? []).map(({ name }) => name ?? "");
  const ours = new Set(parseManagedSecrets(live));
  const before = (live.imagePullSecrets ?? []).map(({ name }) => name ?? "");
  const kept = before.filter((name) => !ours.has(name) || wanted.includes(name));
  const after = [...kept, ...wanted.filter((name) => !kept.includes(name))];
  const metadata = mergeMetadata(live.metadata, proposed.metadata);
  const sameSecrets = after.length === before.length && after.every((name, i) => name === before[i]);
  if (!metadata && sameSecrets) return null;
  return {
    ...live,
    metadata: metadata ?? live.metadata,
    ...(after.length > 0 || live.imagePullSecrets ? { imagePullSecrets: after.map((name) => ({ name })) } : {}),
  };
}

function parseManagedSecrets(account: ServiceAccount): string[] {
  const text = account.metadata.annotations?.[annotations.managedSecrets];
  if (!text) return [];
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value.filter((name): name is string => typeof name === "string") : [];
  } catch {
    return [];
  }
}
