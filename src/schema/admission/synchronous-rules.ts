import { annotations } from "../../api/labels.ts";
import { parseGoBoolean } from "../../api/markers.ts";
import { invalid, required } from "./field-issue.ts";
import { type ClusterRule, when } from "./rule.ts";

const path = "spec.postgresql.synchronous";

/** Synchronous replication and the failover quorum that rests on it. */
export const checkSynchronous: ClusterRule = ({ metadata, spec }) => {
  const { synchronous, syncReplicaElectionConstraint: constraint } = spec.postgresql ?? {};
  const quorumAnnotation = parseGoBoolean(metadata.annotations?.[annotations.failoverQuorum]);
  const antiAffinity = when(
    Boolean(constraint?.enabled) && (constraint?.nodeLabelsAntiAffinity ?? []).length === 0,
    invalid(
      "spec.postgresql.syncReplicaElectionConstraint.nodeLabelsAntiAffinity",
      null,
      "Can't enable syncReplicaConstraints without passing labels for comparison inside nodeLabelsAntiAffinity",
    ),
  );
  if (!synchronous)
    return [
      ...antiAffinity,
      ...when(
        quorumAnnotation === true,
        required(path, "Invalid failoverQuorum configuration: synchronous replication configuration is required."),
      ),
    ];
  const { number, standbyNamesPre = [], standbyNamesPost = [] } = synchronous;
  const named = standbyNamesPre.length + standbyNamesPost.length;
  return [
    ...antiAffinity,
    ...when(
      (spec.minSyncReplicas ?? 0) > 0 || (spec.maxSyncReplicas ?? 0) > 0,
      invalid(path, synchronous, "Can't have both legacy synchronous replica configuration and new one"),
    ),
    ...when(
      number >= spec.instances + named,
      invalid(
        path,
        synchronous,
        "Invalid synchronous configuration: the number of synchronous replicas must be less than the total number " +
          "of instances and the provided standby names.",
      ),
    ),
    ...when(
      (quorumAnnotation ?? synchronous.failoverQuorum ?? false) && number <= named,
      invalid(
        path,
        synchronous,
        "Invalid failoverQuorum configuration: spec.postgresql.synchronous.number must be greater than the total " +
          "number of instances in spec.postgresql.synchronous.standbyNamesPre and " +
          "spec.postgresql.synchronous.standbyNamesPost to allow automatic failover.",
      ),
    ),
  ];
};
