/** Exact texts of `Cluster.status.phase` (reference: cluster controller §1.6). */
export const phases = {
  settingUpPrimary: "Setting up primary",
  creatingReplica: "Creating a new replica",
  healthy: "Cluster in healthy state",
  failingOver: "Failing over",
  switchover: "Switchover in progress",
  upgrading: "Upgrading cluster",
  majorUpgrade: "Upgrading Postgres major version",
  upgradeDelayed: "Cluster upgrade delayed",
  waitingForUser: "Waiting for user action",
  inPlacePrimaryRestart: "Primary instance is being restarted in-place",
  inPlaceDeletePrimaryRestart: "Primary instance is being restarted without a switchover",
  onlineUpgrading: "Online upgrade in progress",
  applyingConfiguration: "Applying configuration",
  waitingForInstances: "Waiting for the instances to become active",
  promotingReplicaCluster: "Promoting to primary cluster",
  unrecoverable: "Cluster is unrecoverable and needs manual intervention",
  architectureMissing: "Cluster cannot execute instance online upgrade due to missing architecture binary",
  unknownPlugin: "Cluster cannot proceed to reconciliation due to an unknown plugin being required",
  pluginFailure: "Cluster cannot proceed to reconciliation due to an error while interacting with plugins",
  imageCatalogError: "Cluster has incomplete or invalid image catalog",
  cannotCreateObjects: "Unable to create required cluster objects",
  invalid: "Invalid cluster definition",
  statusExtractionError: "Instance Status Extraction Error: HTTP communication issue",
  notEnoughDisk: "Not enough disk space",
} as const;

export type Phase = (typeof phases)[keyof typeof phases];
