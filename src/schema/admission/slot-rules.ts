import type { Cluster } from "../../api/generated/cluster.ts";
import { compileGoPattern } from "../../postgres/go-pattern.ts";
import { usedExtensions } from "../../postgres/managed-extensions.ts";
import { parsePostgresBoolean } from "../../postgres/values.ts";
import { specMajor } from "./default-parameters.ts";
import { type FieldIssue, invalid } from "./field-issue.ts";
import { parameterPath } from "./parameter-rules.ts";
import { type ClusterRule, when } from "./rule.ts";

/** Replication slots, and what must be on for them to be copied to standbys. */
export const checkReplicationSlots: ClusterRule = (cluster) => [
  ...checkExcludePatterns(cluster),
  ...checkLogicalDecoding(cluster),
  ...checkFailoverSlots(cluster),
];

function checkExcludePatterns({ spec }: Cluster): FieldIssue[] {
  const patterns = spec.replicationSlots?.synchronizeReplicas?.excludePatterns ?? [];
  const bad = patterns.filter((pattern) => compileGoPattern(pattern) === undefined);
  return when(
    bad.length > 0,
    invalid(
      "spec.replicationSlots.synchronizeReplicas.excludePatterns",
      bad,
      "Cannot configure synchronizeReplicas. Invalid regexes were found",
    ),
  );
}

function checkLogicalDecoding(cluster: Cluster): FieldIssue[] {
  const path = "spec.replicationSlots.highAvailability.synchronizeLogicalDecoding";
  if (!cluster.spec.replicationSlots?.highAvailability?.synchronizeLogicalDecoding) return [];
  const major = specMajor(cluster);
  if (usesFailoverSlots(cluster) || major === undefined) return [];
  if (major < 17)
    return [
      invalid(
        path,
        true,
        "pg_failover_slots extension must be enabled to use synchronizeLogicalDecoding with Postgres versions < 17",
      ),
    ];
  return [
    ...when(
      !isOn(cluster, "hot_standby_feedback"),
      invalid(
        parameterPath("hot_standby_feedback"),
        cluster.spec.postgresql?.parameters?.["hot_standby_feedback"] ?? "",
        `\`hot_standby_feedback\` must be enabled to enable \`${path}\``,
      ),
    ),
    ...when(
      !isOn(cluster, "sync_replication_slots"),
      invalid(
        parameterPath("sync_replication_slots"),
        cluster.spec.postgresql?.parameters?.["sync_replication_slots"] ?? "",
        `either \`sync_replication_slots\` setting or pg_failover_slots extension must be enabled to enable \`${path}\``,
      ),
    ),
  ];
}

function checkFailoverSlots(cluster: Cluster): FieldIssue[] {
  if (!usesFailoverSlots(cluster)) return [];
  const slots = cluster.spec.replicationSlots;
  return [
    ...when(
      !isOn(cluster, "hot_standby_feedback"),
      invalid(
        parameterPath("hot_standby_feedback"),
        cluster.spec.postgresql?.parameters?.["hot_standby_feedback"] ?? "",
        "`hot_standby_feedback` must be enabled to use  extension",
      ),
    ),
    ...when(slots === undefined, invalid("spec.replicationSlots", null, "replicationSlots must be enabled")),
    ...when(
      slots !== undefined && !(slots.highAvailability?.enabled ?? false),
      invalid(
        "spec.replicationSlots.highAvailability",
        slots?.highAvailability ?? null,
        "High Availability replication slots must be enabled",
      ),
    ),
  ];
}

function usesFailoverSlots(cluster: Cluster): boolean {
  return usedExtensions(cluster.spec.postgresql?.parameters ?? {}).some(({ name }) => name === "pg_failover_slots");
}

function isOn(cluster: Cluster, name: string): boolean {
  return parsePostgresBoolean(cluster.spec.postgresql?.parameters?.[name] ?? "") === true;
}
