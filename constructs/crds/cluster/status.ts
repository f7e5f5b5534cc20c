import type { Schema } from "../../../src/schema/crd/structural-schema.ts";
import {
  boolean,
  type Fields,
  integer,
  listOf,
  mapOf,
  object,
  required,
  string,
  stringList,
} from "../parts/builders.ts";
import { conditions } from "../shared/conditions.ts";
import { usedExtensionImages } from "../shared/extension.ts";
import { certificatesStatus } from "./certificates.ts";
import { integrations } from "./status-integrations.ts";

function imageInfo(description: string): Schema {
  return object(description, {
    extensions: usedExtensionImages("Extensions mounted beside it."),
    image: required(string("The image.")),
    majorVersion: required(integer("Major version of PostgreSQL in the image.")),
  });
}

const primary: Fields = {
  currentPrimary: string("Instance that is primary."),
  currentPrimaryFailingSinceTimestamp: string("When the primary was first seen failing."),
  currentPrimaryTimestamp: string("When the primary became primary."),
  demotionToken: string("Token that lets another cluster take over after this one was demoted."),
  lastPromotionToken: string("Token with which this cluster last took over."),
  switchReplicaClusterStatus: object("Change from or to following another cluster.", {
    inProgress: boolean("Whether the change is going on."),
  }),
  targetPrimary: string("Instance that is to be primary."),
  targetPrimaryTimestamp: string("When the choice of the next primary was made."),
  timelineID: integer("Timeline of the primary."),
};

const volumes: Fields = {
  danglingPVC: stringList("Volume claims without an instance."),
  healthyPVC: stringList("Volume claims in use."),
  initializingPVC: stringList("Volume claims being filled."),
  pvcCount: integer("Volume claims that there are.", { bits: 32 }),
  resizingPVC: stringList("Volume claims being grown."),
  unusablePVC: stringList("Volume claims that an instance cannot use because another one is missing."),
};

const instances: Fields = {
  instanceNames: stringList("Instances that there are."),
  instances: integer("Instances that there are, by number."),
  instancesReportedState: mapOf(
    "What each instance reports, by name.",
    object("Report of an instance.", {
      ip: string("Address of the pod."),
      isPrimary: required(boolean("Whether it is primary.")),
      timeLineID: integer("Timeline that it is on."),
    }),
  ),
  instancesStatus: mapOf("Instances by state.", { type: "array", items: { type: "string" } }),
  jobCount: integer("Jobs that there are.", { bits: 32 }),
  latestGeneratedNode: integer("Number of the newest instance."),
  readyInstances: integer("Instances that are ready, by number."),
  selector: string("Labels of the instances, for autoscalers."),
  topology: object("Where the instances run.", {
    instances: mapOf("Labels of each instance's node, by instance.", {
      type: "object",
      additionalProperties: { type: "string" },
    }),
    nodesUsed: integer("Nodes in use.", { bits: 32 }),
    successfullyExtracted: boolean("Whether the labels could be read."),
  }),
};

const backups: Fields = {
  firstRecoverabilityPoint: string("Earliest time that can be restored."),
  firstRecoverabilityPointByMethod: mapOf("Earliest time that can be restored, by method.", {
    type: "string",
    format: "date-time",
  }),
  lastFailedBackup: string("When a backup last failed."),
  lastSuccessfulBackup: string("When a backup last succeeded."),
  lastSuccessfulBackupByMethod: mapOf("When a backup last succeeded, by method.", {
    type: "string",
    format: "date-time",
  }),
};

/** `status` of a Cluster. */
export const status = object("State of the cluster as last seen by the operator and its instances.", {
  ...backups,
  ...instances,
  ...integrations,
  ...primary,
  ...volumes,
  availableArchitectures: listOf(
    "Architectures that the operator has an instance manager for.",
    object("One architecture.", {
      goArch: required(string("Name of the architecture.")),
      hash: required(string("SHA-256 of the instance manager.")),
    }),
  ),
  certificates: certificatesStatus,
  cloudNativePGCommitHash: string("Commit that the operator was built from."),
  cloudNativePGOperatorHash: string("SHA-256 of the operator."),
  conditions,
  image: string("Image of PostgreSQL in use."),
  onlineUpdateEnabled: boolean("Whether instance managers are updated without a restart of PostgreSQL."),
  operatorCertificateFingerprint: string("Fingerprint of the certificate that the operator shows to instances."),
  pgDataImageInfo: imageInfo("Image that the data was last written with."),
  phase: string("State of the cluster in a few words."),
  phaseReason: string("Why the cluster is in this state."),
  readService: string("Service that leads to every instance."),
  systemID: string("System identifier of PostgreSQL."),
  targetPgDataImageInfo: imageInfo("Image that the data is being upgraded to."),
  writeService: string("Service that leads to the primary."),
});
