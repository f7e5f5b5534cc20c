import { clusterName, isReplicaCluster } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { phases } from "../../api/phases.ts";
import { expectedSynchronousNumber } from "../../postgres/synchronous.ts";
import type { InstanceFacts } from "./facts.ts";
import type { MetricFamily, SampleSet } from "./sample-set.ts";

/** A gauge of the built-in collector. */
export function collectorGauge(name: string, help: string): MetricFamily {
  return { name: `cnpg_collector_${name}`, help, type: "gauge" };
}

export const syncReplicas = collectorGauge("sync_replicas", "Number of synchronous replicas: asked for and in effect");

/** Metrics that the Cluster object tells, without a question to PostgreSQL. */
export function addClusterMetrics(samples: SampleSet, cluster: Cluster, instance: InstanceFacts): void {
  const add = (name: string, help: string, value: number) => samples.add(collectorGauge(name, help), {}, value);
  const isCurrentPrimary = cluster.status?.currentPrimary === instance.podName;
  add(
    "manual_switchover_required",
    "1 when the user has to switch over for the cluster to go on",
    Number(isCurrentPrimary && cluster.status?.phase === phases.waitingForUser),
  );
  add("replica_mode", "1 when the cluster follows another one", Number(isReplicaCluster(cluster)));
  add("fencing_on", "1 when this instance is fenced", Number(instance.isFenced));
  add("nodes_used", "Number of nodes the instances run on, -1 when it is not known", nodesUsed(cluster));
  samples.add(syncReplicas, { value: "min" }, cluster.spec.minSyncReplicas ?? 0);
  samples.add(syncReplicas, { value: "max" }, cluster.spec.maxSyncReplicas ?? 0);
  samples.add(syncReplicas, { value: "expected" }, expectedSynchronousNumber(cluster));
  const status = isCurrentPrimary ? cluster.status : undefined;
  const times: [string, string, string | undefined][] = [
    ["first_recoverability_point", "Earliest time to recover to, 0 when none", status?.firstRecoverabilityPoint],
    ["last_available_backup_timestamp", "When the last good backup ended, 0 when none", status?.lastSuccessfulBackup],
    ["last_failed_backup_timestamp", "When a backup failed last, 0 when never", status?.lastFailedBackup],
  ];
  for (const [name, help, time] of times) add(name, help, toSeconds(time));
}

/** Labels of `up` and of the version. */
export function clusterLabel(cluster: Cluster | undefined): { cluster: string } {
  return { cluster: cluster ? clusterName(cluster) : "" };
}

function nodesUsed(cluster: Cluster): number {
  const topology = cluster.status?.topology;
  return topology?.successfullyExtracted ? (topology.nodesUsed ?? 0) : -1;
}

function toSeconds(time: string | undefined): number {
  if (!time) return 0;
  const ms = Date.parse(time);
  return Number.isNaN(ms) ? 0 : ms / 1000;
}
