import { secretNames } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import type { Pooler } from "../../api/generated/pooler.ts";
import { ownsObject } from "../../build/metadata.ts";
import type { ClusterStatus } from "./conditions.ts";
import type { ObservedCluster } from "./observed.ts";

type SecretVersions = NonNullable<ClusterStatus["secretsResourceVersion"]>;

/** Versions of every Secret that instances read; a new version makes them reload. A missing Secret has the version "". */
export function secretVersions(cluster: Cluster, observed: ObservedCluster): SecretVersions {
  const names = secretNames(cluster);
  const versionOf = (name: string): string => observed.secrets.get(name)?.metadata.resourceVersion ?? "";
  const result: SecretVersions = {
    applicationSecretVersion: versionOf(names.app),
    replicationSecretVersion: versionOf(names.replicationTls),
    clientCaSecretVersion: versionOf(names.clientCa),
    serverCaSecretVersion: versionOf(names.serverCa),
    serverSecretVersion: versionOf(names.serverTls),
  };
  if (cluster.spec.enableSuperuserAccess) result.superuserSecretVersion = versionOf(names.superuser);
  const endpointCa = cluster.spec.backup?.barmanObjectStore?.endpointCA?.name;
  if (endpointCa) result.barmanEndpointCA = versionOf(endpointCa);
  const roleSecrets = (cluster.spec.managed?.roles ?? []).flatMap((it) => it.passwordSecret?.name ?? []);
  if (roleSecrets.length > 0) result.managedRoleSecretVersion = versions(roleSecrets, versionOf);
  const external = externalClusterSecrets(cluster);
  if (external.length > 0) result.externalClusterSecretVersion = versions(external, versionOf);
  const metrics = (cluster.spec.monitoring?.customQueriesSecret ?? []).map((it) => it.name);
  if (metrics.length > 0) result.metrics = versions(metrics, versionOf);
  return result;
}

/** Versions of the ConfigMaps with custom queries. */
export function configMapVersions(
  cluster: Cluster,
  observed: ObservedCluster,
): NonNullable<ClusterStatus["configMapResourceVersion"]> {
  const names = (cluster.spec.monitoring?.customQueriesConfigMap ?? []).map((it) => it.name);
  if (names.length === 0) return {};
  return { metrics: versions(names, (name) => observed.configMaps.get(name)?.metadata.resourceVersion ?? "") };
}

/** Whether the operator makes the pooler's user and certificate itself. */
export function usesAutomatedIntegration(pooler: Pooler): boolean {
  const bouncer = pooler.spec.pgbouncer;
  return bouncer !== undefined && !bouncer.authQuery && !bouncer.authQuerySecret && !bouncer.serverTLSSecret;
}

/** Secrets through which poolers authenticate; a Secret of somebody else is left out. */
export function poolerIntegrations(
  cluster: Cluster,
  observed: ObservedCluster,
): NonNullable<ClusterStatus["poolerIntegrations"]> {
  const name = secretNames(cluster).pooler;
  const secret = observed.secrets.get(name);
  const isOurs = !secret || ownsObject(cluster, secret);
  const isUsed = observed.poolers.some(usesAutomatedIntegration);
  return { pgBouncerIntegration: isUsed && isOurs ? { secrets: [name] } : {} };
}

function externalClusterSecrets(cluster: Cluster): string[] {
  return (cluster.spec.externalClusters ?? []).flatMap((it) =>
    [it.password?.name, it.sslCert?.name, it.sslKey?.name, it.sslRootCert?.name].filter((name) => name !== undefined),
  );
}

function versions(names: readonly string[], versionOf: (name: string) => string): Record<string, string> {
  return Object.fromEntries([...new Set(names)].sort().map((name) => [name, versionOf(name)]));
}
