import type { Backup } from "../../api/generated/backup.ts";
import type { ClusterImageCatalog } from "../../api/generated/clusterimagecatalog.ts";
import type { DatabaseRole } from "../../api/generated/databaserole.ts";
import type { FailoverQuorum } from "../../api/generated/failoverquorum.ts";
import type { ImageCatalog } from "../../api/generated/imagecatalog.ts";
import type {
  ConfigMap,
  Job,
  Lease,
  Node,
  ObjectMeta,
  PersistentVolumeClaim,
  Pod,
  PodDisruptionBudget,
  Role,
  RoleBinding,
  Secret,
  Service,
  ServiceAccount,
} from "../../api/generated/kubernetes.ts";
import type { Pooler } from "../../api/generated/pooler.ts";
import type { PostgresStatus } from "../../api/pg-status.ts";
import type { VolumeFailure } from "../../api/volume-failure.ts";
import type { ObservedCertificate } from "../../build/certificates.ts";
import type { BuildContext } from "../../build/context.ts";
import type { ObservedPlugins } from "./plugins.ts";
import type { ObservedControlData } from "./replica-cluster.ts";

/** An instance whose status call succeeded in this pass. Destructive steps take only this kind. */
export interface AnsweredInstance {
  kind: "answered";
  name: string;
  pod: Pod;
  /** Readiness as the API server tells it. */
  ready: boolean;
  status: PostgresStatus;
}

/** An instance that was asked and whose state is unknown. */
export interface SilentInstance {
  kind: "silent";
  name: string;
  pod: Pod;
  ready: boolean;
  /** Why there is no answer. */
  reason: string;
  /** All that it told instead of its state, if it did. */
  volumeFailure?: VolumeFailure;
}

export type PolledInstance = AnsweredInstance | SilentInstance;

/** Objects of one kind in the cluster's namespace, by name. */
export type ByName<T> = ReadonlyMap<string, T>;

/** What is true of the running operator itself. */
export interface OperatorFacts {
  context: BuildContext;
  commitHash: string;
  /** SHA-256 of the manager that instances get from this operator, in hex. */
  managerHash: string;
  architectures: readonly { goArch: string; hash: string }[];
  /** SHA-256 of the public key of the operator's client certificate, in hex. */
  certificateFingerprint: string;
  onlineUpdateEnabled: boolean;
  drainTaints: readonly string[];
  /** Milliseconds between two rollout steps of one cluster, and of different ones. */
  instancesRolloutDelayMs: number;
  clustersRolloutDelayMs: number;
}

/** The last rollout step of any cluster; the operator keeps one slot in memory. */
export interface RolloutSlot {
  cluster: string;
  instance: string;
  /** Of the pod that is replaced; empty when none is. */
  podUid: string;
  atMs: number;
}

/** What became of sending an instance its manager, as this operator remembers it. */
export interface ManagerUpload {
  /** `sent`: all of it, and the connection ended as it does at a take-over; `refused`: not now, said the instance. */
  kind: "sending" | "sent" | "refused" | "failed";
  atMs: number;
  hash: string;
  /** What the instance ran before. */
  oldHash: string;
  /** Attempts in a row that were refused or failed. */
  attempts: number;
}

/** What is read of a VolumeSnapshot. */
export interface ObservedSnapshot {
  metadata: { name?: string; labels?: Record<string, string>; annotations?: Record<string, string> };
}

/** Everything that one pass over a cluster may know, frozen before the decision. */
export interface ObservedCluster {
  /** Instance pods owned by the cluster, sorted by name. */
  pods: readonly Pod[];
  /** Volumes owned by the cluster, sorted by name. */
  volumes: readonly PersistentVolumeClaim[];
  /** Volumes and instance pods that carry the cluster's name and that nothing owns. */
  orphanVolumes: readonly PersistentVolumeClaim[];
  orphanPods: readonly Pod[];
  /** Jobs owned by the cluster, sorted by name. */
  jobs: readonly Job[];
  /** Pods of those Jobs, to tell why one does not start. */
  jobPods: readonly Pod[];
  nodes: ByName<Node>;
  /** One entry per active pod, in any order. */
  instances: readonly PolledInstance[];
  secrets: ByName<Secret>;
  /** What the Secrets with certificates hold, by name. */
  certificates: ByName<ObservedCertificate>;
  configMaps: ByName<ConfigMap>;
  services: ByName<Service>;
  serviceAccounts: ByName<ServiceAccount>;
  roles: ByName<Role>;
  roleBindings: ByName<RoleBinding>;
  budgets: ByName<PodDisruptionBudget>;
  lease: Lease | undefined;
  /** How long the Lease has been seen unchanged, by a live read at the end, in milliseconds; absent = not known. */
  leaseUnchangedMs?: number;
  failoverQuorum: FailoverQuorum | undefined;
  poolers: readonly Pooler[];
  databaseRoles: readonly DatabaseRole[];
  imageCatalogs: ByName<ImageCatalog>;
  clusterImageCatalogs: ByName<ClusterImageCatalog>;
  backups: ByName<Backup>;
  /** Volume snapshots that the first primary is made from, by name; absent once there is one. */
  recoverySnapshots?: ByName<ObservedSnapshot>;
  /** The sources in the operator's namespace, when that is known. */
  operatorObjects: { pullSecret?: Secret; queriesConfigMap?: ConfigMap; queriesSecret?: Secret };
  /** IPs of the pods that each of `spec.podSelectorRefs` matches. */
  selectedPods: readonly { name: string; ips: string[] }[];
  /** Present when the API server knows PodMonitors; `object` is the cluster's own. */
  podMonitor?: { object?: { metadata: ObjectMeta; spec?: Record<string, unknown> } };
  /** Of the primary of a cluster that is being demoted; absent when nobody asked for them. */
  controlData?: ObservedControlData;
  rolloutSlot: RolloutSlot | undefined;
  /** By UID of the pod; absent when none was sent. */
  managerUploads?: ReadonlyMap<string, ManagerUpload>;
  /** Absent as long as nobody asked them. */
  plugins?: ObservedPlugins;
  operator: OperatorFacts;
}
