/** Label keys of the compatible API (reference: cluster controller §3.1). */
export const labels = {
  cluster: "cnpg.io/cluster",
  instanceName: "cnpg.io/instanceName",
  podRole: "cnpg.io/podRole",
  instanceRole: "cnpg.io/instanceRole",
  /** Deprecated twin of `instanceRole`, always written together with it. */
  legacyRole: "role",
  jobRole: "cnpg.io/jobRole",
  pvcRole: "cnpg.io/pvcRole",
  tablespaceName: "cnpg.io/tablespaceName",
  reload: "cnpg.io/reload",
  userType: "cnpg.io/userType",
  isManaged: "cnpg.io/isManaged",
  poolerName: "cnpg.io/poolerName",
  backupName: "cnpg.io/backupName",
  pluginName: "cnpg.io/pluginName",
  appName: "app.kubernetes.io/name",
  appInstance: "app.kubernetes.io/instance",
  appVersion: "app.kubernetes.io/version",
  appComponent: "app.kubernetes.io/component",
  appManagedBy: "app.kubernetes.io/managed-by",
} as const;

/** Annotation keys of the compatible API (reference: cluster controller §3.2) and our own additions. */
export const annotations = {
  operatorVersion: "cnpg.io/operatorVersion",
  nodeSerial: "cnpg.io/nodeSerial",
  podSpec: "cnpg.io/podSpec",
  podEnvHash: "cnpg.io/podEnvHash",
  pvcStatus: "cnpg.io/pvcStatus",
  managedSecrets: "cnpg.io/managedSecrets",
  lastAppliedSpec: "cnpg.io/lastAppliedSpec",
  updateStrategy: "cnpg.io/updateStrategy",
  fencedInstances: "cnpg.io/fencedInstances",
  hibernation: "cnpg.io/hibernation",
  reconciliationLoop: "cnpg.io/reconciliationLoop",
  reconcilePodSpec: "cnpg.io/reconcilePodSpec",
  podPatch: "cnpg.io/podPatch",
  skipEmptyWalArchiveCheck: "cnpg.io/skipEmptyWalArchiveCheck",
  skipWalArchiving: "cnpg.io/skipWalArchiving",
  backupLabelFile: "cnpg.io/backupLabelFile",
  backupTablespaceMapFile: "cnpg.io/backupTablespaceMapFile",
  coredumpFilter: "cnpg.io/coredumpFilter",
  reloadedAt: "cnpg.io/reloadedAt",
  restartedAt: "kubectl.kubernetes.io/restartedAt",
  validation: "cnpg.io/validation",
  passwordPassthrough: "cnpg.io/passwordPassthrough",
  unrecoverable: "alpha.cnpg.io/unrecoverable",
  failoverQuorum: "alpha.cnpg.io/failoverQuorum",
  livenessPinger: "alpha.cnpg.io/livenessPinger",
  enableInstancePprof: "alpha.cnpg.io/enableInstancePprof",
  /** Ours: on the primary Lease, JSON of `LeaseVoters` (safety protocol §1.1, §1.4). */
  leaseVoters: "cnpg-ts.dev/voters",
  /** Ours: on the Cluster, the instance that a person lets be the primary when no voter is left (safety protocol §1.4). */
  namedPrimary: "cnpg-ts.dev/namedPrimary",
  /** Ours: on a Backup, the `reconciliationStartedAt` of the start that its pod has accepted. */
  backupAccepted: "cnpg-ts.dev/backupAccepted",
  /** Ours: on a Backup, how often it was begun anew because its pod went away. */
  backupRestarts: "cnpg-ts.dev/backupRestarts",
  /** Ours: on a Cluster, JSON of its last rollout step (`RolloutNote`). */
  lastRollout: "cnpg-ts.dev/lastRollout",
  /** Seconds without a finished write after which a volume counts as dead; 0 = it is not probed. */
  diskProbeSeconds: "cnpg-ts.dev/diskProbeSeconds",
  /** Ours: on a Cluster, what follows a pg_rewind that keeps failing: `clone` (default) or `keep`. */
  failedRewind: "cnpg-ts.dev/failedRewind",
} as const;

/** Prefix of the AppArmor annotations that are copied to pods; followed by a container name. */
export const appArmorPrefix = "container.apparmor.security.beta.kubernetes.io/";
