// What a plugin author writes: one object per service, with the methods the plugin has. A method that is there becomes a
// capability; nothing is claimed twice.
import type { Backup } from "../../api/generated/backup.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import type { KubeObject } from "../../ports/kube-api.ts";
import type {
  EnrichConfigurationRequest,
  LifecycleCapability,
  LifecycleOperation,
  PluginBackupRequest,
  PluginBackupResult,
  PluginMetric,
  PluginRestoreRequest,
  PluginRestoreResult,
  PluginSample,
  PluginValidationError,
  ReconcilerResult,
  WalArchiveRequest,
  WalRestoreRequest,
  WalStatus,
} from "../../ports/plugin.ts";
import type { JsonPatchOperation } from "../../rpc/lifecycle-patch.ts";
import type { CallContext } from "../../rpc/server.ts";

type Answer<T> = T | Promise<T>;

/** Nothing, or an empty patch, means no change. */
export type PatchAnswer = readonly JsonPatchOperation[] | undefined;

export interface OperatorService {
  validateClusterCreate?(cluster: Cluster, context: CallContext): Answer<readonly PluginValidationError[]>;
  validateClusterChange?(
    clusters: { before: Cluster; after: Cluster },
    context: CallContext,
  ): Answer<readonly PluginValidationError[]>;
  mutateCluster?(cluster: Cluster, context: CallContext): Answer<PatchAnswer>;
  /** The plugin's entry in the Cluster status; `undefined` leaves it as it is. */
  setStatusInCluster?(cluster: Cluster, context: CallContext): Answer<object | undefined>;
  deregister?(cluster: Cluster, context: CallContext): Answer<void>;
}

export interface LifecycleService {
  /** Kinds and operations for which the hook is called. Offer `evaluate` with `create` for pods, else changes never roll out. */
  capabilities: readonly LifecycleCapability[];
  /**
   * Must answer the same for the same input, and nothing where its work is done already. The operation is `unknown` when the client
   * does not say it, or says one of a later protocol.
   */
  hook(
    request: { operation: LifecycleOperation | "unknown"; cluster: Cluster; object: KubeObject },
    context: CallContext,
  ): Answer<PatchAnswer>;
}

export interface ReconcilerService {
  kinds: readonly ("Cluster" | "Backup")[];
  pre?(request: { cluster: Cluster; resource: KubeObject }, context: CallContext): Answer<ReconcilerAnswer>;
  post?(request: { cluster: Cluster; resource: KubeObject }, context: CallContext): Answer<ReconcilerAnswer>;
}

/** `undefined` goes on. */
export type ReconcilerAnswer =
  | undefined
  | { behavior: Exclude<ReconcilerResult["behavior"], "requeue"> }
  | { behavior: "requeue"; requeueAfterSeconds: number };

export interface WalService {
  /** Answers when the file is safe. */
  archive?(request: WalArchiveRequest<Cluster>, context: CallContext): Answer<void>;
  /** Throws `StatusError("NOT_FOUND", …)` only when the archive is known not to hold the file. */
  restore?(request: Required<WalRestoreRequest<Cluster>>, context: CallContext): Answer<void>;
  status?(cluster: Cluster, context: CallContext): Answer<WalStatus>;
  setFirstRequired?(request: { cluster: Cluster; firstRequiredWal: string }, context: CallContext): Answer<void>;
}

export interface BackupService {
  backup(
    request: Required<Omit<PluginBackupRequest<Cluster>, "backup">> & { backup: Backup },
    context: CallContext,
  ): Answer<PluginBackupResult>;
}

export interface RestoreJobService {
  restore(request: PluginRestoreRequest<Cluster>, context: CallContext): Answer<PluginRestoreResult>;
}

export interface PostgresService {
  /** The complete new settings; an empty object keeps those of the request. */
  enrichConfiguration(
    request: EnrichConfigurationRequest<Cluster>,
    context: CallContext,
  ): Answer<Record<string, string>>;
}

export interface MetricsService {
  define(cluster: Cluster, context: CallContext): Answer<readonly PluginMetric[]>;
  collect(cluster: Cluster, context: CallContext): Answer<readonly PluginSample[]>;
}

/** The services of a plugin; each one given is claimed. */
export interface PluginServices {
  operator?: OperatorService;
  lifecycle?: LifecycleService;
  reconciler?: ReconcilerService;
  wal?: WalService;
  backup?: BackupService;
  restoreJob?: RestoreJobService;
  postgres?: PostgresService;
  metrics?: MetricsService;
}
