import { clusterName } from "../api/cluster-facts.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import { byCodeUnits } from "./configuration.ts";

/** A list of synchronous standbys as PostgreSQL is told it. */
export interface SynchronousStandbys {
  method: "ANY" | "FIRST";
  number: number;
  standbyNames: string[];
}

/** Which standbys commits wait for; `undefined` when they wait for none. */
export function planSynchronousStandbys(cluster: Cluster): SynchronousStandbys | undefined {
  const wanted = cluster.spec.postgresql?.synchronous
    ? explicitStandbys(cluster, cluster.spec.postgresql.synchronous)
    : legacyStandbys(cluster);
  return wanted && wanted.standbyNames.length > 0 && wanted.number > 0 ? wanted : undefined;
}

/** Value of `synchronous_standby_names`. */
export function formatSynchronousStandbys(standbys: SynchronousStandbys): string {
  const names = standbys.standbyNames.map((name) => `"${name.replaceAll('"', '""')}"`).join(",");
  return `${standbys.method} ${standbys.number} (${names})`;
}

/** The same as JSON, the form in which the failover quorum reads it back from PostgreSQL. */
export function formatSynchronousMetadata(standbys: SynchronousStandbys): string {
  return JSON.stringify({
    method: standbys.method,
    number: standbys.number,
    standbyNames: standbys.standbyNames,
  });
}

/** Reads the JSON that PostgreSQL reports as loaded; `undefined` when it is absent or foreign. */
export function parseSynchronousMetadata(text: string): SynchronousStandbys | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { method, number, standbyNames } = value as Record<string, unknown>;
  if ((method !== "ANY" && method !== "FIRST") || typeof number !== "number" || !Array.isArray(standbyNames)) {
    return undefined;
  }
  return { method, number, standbyNames: standbyNames.filter((name): name is string => typeof name === "string") };
}

/** Number of standbys that the specification asks commits to wait for, as the metric reports it. */
export function expectedSynchronousNumber(cluster: Cluster): number {
  return cluster.spec.postgresql?.synchronous?.number ?? legacyNumber(cluster, electableStandbys(cluster).length);
}

type SynchronousSpec = NonNullable<NonNullable<Cluster["spec"]["postgresql"]>["synchronous"]>;

function explicitStandbys(cluster: Cluster, spec: SynchronousSpec): SynchronousStandbys {
  const method = spec.method === "first" ? "FIRST" : "ANY";
  const limit = spec.maxStandbyNamesFromCluster;
  const healthy = healthyStandbys(cluster);
  if (spec.dataDurability === "preferred") {
    const standbyNames = healthy.slice(0, limit);
    return { method, number: Math.min(spec.number, standbyNames.length), standbyNames };
  }
  const primary = cluster.status?.currentPrimary;
  const others = (cluster.status?.instanceNames ?? [])
    .filter((name) => name !== primary && !healthy.includes(name))
    .sort(byCodeUnits);
  // The primary closes the list so that the set stays the same across a switchover.
  const own = primary && isReported(cluster, primary) ? [primary] : [];
  const names = [
    ...(spec.standbyNamesPre ?? []),
    ...[...healthy, ...others, ...own].slice(0, limit),
    ...(spec.standbyNamesPost ?? []),
  ];
  // Required durability with nobody known yet must block, so a name that never connects stands in.
  const standbyNames = names.length > 0 ? names : [`${clusterName(cluster)}-placeholder`];
  return { method, number: spec.number, standbyNames };
}

function legacyStandbys(cluster: Cluster): SynchronousStandbys {
  const standbyNames = electableStandbys(cluster);
  return { method: "ANY", number: legacyNumber(cluster, standbyNames.length), standbyNames };
}

function legacyNumber(cluster: Cluster, electable: number): number {
  const min = cluster.spec.minSyncReplicas ?? 0;
  const max = cluster.spec.maxSyncReplicas ?? 0;
  const ready = healthyInstances(cluster).length - 1;
  if (ready < 0) return 0;
  let number = max;
  if (ready < number) number = min;
  if (ready < min) number = ready;
  return Math.max(0, Math.min(number, electable));
}

function electableStandbys(cluster: Cluster): string[] {
  const standbys = healthyStandbys(cluster);
  if (!cluster.spec.postgresql?.syncReplicaElectionConstraint?.enabled) return standbys;
  const topology = cluster.status?.topology;
  if (!topology?.successfullyExtracted) return standbys;
  const primaryLabels = topology.instances?.[cluster.status?.currentPrimary ?? ""];
  if (!primaryLabels) return [];
  return standbys.filter((name) => !sameLabels(primaryLabels, topology.instances?.[name] ?? {}));
}

function sameLabels(left: Record<string, string>, right: Record<string, string>): boolean {
  const keys = new Set([...Object.keys(left), ...Object.keys(right)]);
  return [...keys].every((key) => left[key] === right[key]);
}

function healthyInstances(cluster: Cluster): string[] {
  return cluster.status?.instancesStatus?.["healthy"] ?? [];
}

function healthyStandbys(cluster: Cluster): string[] {
  const primary = cluster.status?.currentPrimary;
  return healthyInstances(cluster)
    .filter((name) => name !== primary)
    .sort(byCodeUnits);
}

function isReported(cluster: Cluster, instance: string): boolean {
  return Object.values(cluster.status?.instancesStatus ?? {}).some((names) => names.includes(instance));
}
