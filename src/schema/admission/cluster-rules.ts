import { checkAccess } from "./access-rules.ts";
import { checkAffinity } from "./affinity-rules.ts";
import { checkBackup } from "./backup-rules.ts";
import { checkBootstrap } from "./bootstrap-rules.ts";
import { checkSecrets } from "./certificate-rules.ts";
import { checkEnvironment } from "./environment-rules.ts";
import { checkExtensions } from "./extension-rules.ts";
import { checkExternalClusters } from "./external-cluster-rules.ts";
import { checkImage } from "./image-rules.ts";
import { checkInstances, checkPrimaryLease, checkServiceAccount } from "./instance-rules.ts";
import { checkManagedRoles, checkManagedServices } from "./managed-rules.ts";
import { checkMetadata } from "./metadata-rules.ts";
import { checkParameters } from "./parameter-rules.ts";
import { checkPlugins } from "./plugin-rules.ts";
import { checkRecovery } from "./recovery-rules.ts";
import { checkReplicaCluster } from "./replica-rules.ts";
import { checkResources } from "./resource-rules.ts";
import type { ClusterRule } from "./rule.ts";
import { checkReplicationSlots } from "./slot-rules.ts";
import { checkStorage } from "./storage-rules.ts";
import { checkSynchronous } from "./synchronous-rules.ts";

/** Every group of checks on a cluster by itself, in the order in which their issues are reported. */
export const clusterRules: readonly ClusterRule[] = [
  checkBootstrap,
  checkSecrets,
  checkImage,
  checkRecovery,
  checkInstances,
  checkStorage,
  checkMetadata,
  checkExternalClusters,
  checkAffinity,
  checkReplicaCluster,
  checkBackup,
  checkSynchronous,
  checkParameters,
  checkAccess,
  checkReplicationSlots,
  checkEnvironment,
  checkManagedServices,
  checkManagedRoles,
  checkResources,
  checkPlugins,
  checkExtensions,
  checkServiceAccount,
  checkPrimaryLease,
];
