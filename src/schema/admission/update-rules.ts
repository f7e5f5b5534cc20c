import { isReplicaCluster } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { compareQuantities } from "../../api/quantity.ts";
import { specMajor } from "./default-parameters.ts";
import { type FieldIssue, forbidden, invalid } from "./field-issue.ts";
import { parameterPath } from "./parameter-rules.ts";
import { when } from "./rule.ts";

type Storage = NonNullable<Cluster["spec"]["storage"]>;

/** What may not change once a cluster exists; both objects with their defaults. */
export function checkUpdate(next: Cluster, previous: Cluster): FieldIssue[] {
  return [
    ...checkMajor(next, previous),
    ...checkImageWithParameters(next, previous),
    ...checkVolumes(next, previous),
    ...checkIdentity(next, previous),
    ...checkSlots(next, previous),
    ...checkWalLevelChange(next, previous),
    ...checkReplicaChange(next, previous),
  ];
}

function checkMajor(next: Cluster, previous: Cluster): FieldIssue[] {
  const current = (next.status ?? previous.status)?.pgDataImageInfo?.majorVersion;
  const wanted = specMajor(next);
  if (current === undefined || wanted === undefined) return [];
  const path = next.spec.imageCatalogRef ? "spec.imageCatalogRef.major" : "spec.imageName";
  const value = next.spec.imageCatalogRef?.major ?? next.spec.imageName;
  return [
    ...when(wanted < current, invalid(path, value, `can't downgrade from major ${current} to ${wanted}`)),
    ...when(
      wanted > current && wanted < 16,
      invalid(path, value, "major upgrades are only supported to version 16 or higher"),
    ),
  ];
}

function checkImageWithParameters(next: Cluster, previous: Cluster): FieldIssue[] {
  if (next.spec.primaryUpdateMethod !== "switchover" || next.spec.imageName === previous.spec.imageName) return [];
  const before = previous.spec.postgresql?.parameters ?? {};
  const after = next.spec.postgresql?.parameters ?? {};
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  const changes = names.filter((name) => before[name] !== after[name]);
  const differences = Object.fromEntries(changes.map((name) => [name, [before[name] ?? "", after[name] ?? ""]]));
  return when(
    changes.length > 0,
    invalid(
      "spec.imageName",
      next.spec.imageName,
      "Can't change image name and configuration at the same time when `primaryUpdateMethod` is set to `switchover`. " +
        `There are differences in PostgreSQL configuration parameters: ${JSON.stringify(differences)}`,
    ),
  );
}

function checkVolumes({ spec: next }: Cluster, { spec: previous }: Cluster): FieldIssue[] {
  const before = previous.tablespaces ?? [];
  const after = next.tablespaces ?? [];
  const removed = before.filter(({ name }) => !after.some((tablespace) => tablespace.name === name));
  return [
    ...checkShrink("spec.storage", next.storage, previous.storage),
    ...checkShrink("spec.walStorage", next.walStorage, previous.walStorage),
    ...when(
      previous.walStorage !== undefined && next.walStorage === undefined,
      invalid("spec.walStorage", null, "walStorage cannot be disabled once configured"),
    ),
    ...after.flatMap(({ name, storage }, i) =>
      checkShrink(`spec.tablespaces[${i}]`, storage, before.find((tablespace) => tablespace.name === name)?.storage),
    ),
    ...(before.length > 0 && next.tablespaces === undefined
      ? [invalid("spec.tablespaces", null, "tablespaces section cannot be deleted once created")]
      : removed.map(({ name }) =>
          invalid(
            `spec.tablespaces[${before.findIndex((tablespace) => tablespace.name === name)}]`,
            name,
            "no tablespace can be deleted once created",
          ),
        )),
  ];
}

function checkShrink(path: string, next: Storage | undefined, previous: Storage | undefined): FieldIssue[] {
  const before = requested(previous);
  const after = requested(next);
  if (before === undefined || after === undefined || compareQuantities(after, before) !== -1) return [];
  return [invalid(path, after, `can't shrink existing storage from ${before} to ${after}`)];
}

function requested(storage: Storage | undefined): string | number | undefined {
  return storage?.size || storage?.pvcTemplate?.resources?.requests?.["storage"];
}

function checkIdentity({ spec: next }: Cluster, { spec: previous }: Cluster): FieldIssue[] {
  return [
    ...when(
      (next.postgresGID ?? 26) !== (previous.postgresGID ?? 26),
      invalid("spec.postgresGID", next.postgresGID, "GID is an immutable field in the spec"),
    ),
    ...when(
      (next.postgresUID ?? 26) !== (previous.postgresUID ?? 26),
      invalid("spec.postgresUID", next.postgresUID, "UID is an immutable field in the spec"),
    ),
  ];
}

/** Slots are dropped by whoever made them; a section that vanishes would leave them behind. */
function checkSlots({ spec: next }: Cluster, { spec: previous }: Cluster): FieldIssue[] {
  const before = previous.replicationSlots;
  const after = next.replicationSlots;
  const path = "spec.replicationSlots";
  const section = (name: string) => (after === undefined ? path : `${path}.${name}`);
  const highAvailability = before?.highAvailability?.enabled ?? false;
  const synchronize = before?.synchronizeReplicas?.enabled ?? false;
  const haPath = section("highAvailability");
  const syncPath = section("synchronizeReplicas");
  return [
    ...when(
      highAvailability && after?.highAvailability === undefined,
      invalid(haPath, null, `Cannot remove ${haPath} section while highAvailability is enabled`),
    ),
    ...when(
      highAvailability &&
        after?.highAvailability !== undefined &&
        after.highAvailability.slotPrefix !== before?.highAvailability?.slotPrefix,
      invalid(
        `${path}.highAvailability.slotPrefix`,
        after?.highAvailability?.slotPrefix ?? "",
        "Cannot change replication slot prefix while highAvailability is enabled",
      ),
    ),
    ...when(
      synchronize && after?.synchronizeReplicas === undefined,
      invalid(
        syncPath,
        null,
        `Cannot remove ${syncPath} section while synchronizeReplicas is enabled. ` +
          "Disable synchronizeReplicas first to allow cleanup of user-defined replication slots on replicas",
      ),
    ),
  ];
}

function checkWalLevelChange({ spec: next }: Cluster, { spec: previous }: Cluster): FieldIssue[] {
  const before = previous.postgresql?.parameters?.["wal_level"] ?? "logical";
  const after = next.postgresql?.parameters?.["wal_level"];
  return when(
    after === "minimal" && before !== "minimal",
    invalid(
      parameterPath("wal_level"),
      after,
      `Change of \`wal_level\` to \`minimal\` not allowed on an existing cluster (from ${before})`,
    ),
  );
}

function checkReplicaChange(next: Cluster, previous: Cluster): FieldIssue[] {
  const busy = (next.status ?? previous.status)?.switchReplicaClusterStatus?.inProgress ?? false;
  return when(
    busy && isReplicaCluster(next) !== isReplicaCluster(previous),
    forbidden(
      "spec.replica.enabled",
      "cannot modify the field while there is an ongoing operation to enable the replica cluster",
    ),
  );
}
