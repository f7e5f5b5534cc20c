// What the programs know of a CNPG-I plugin: its calls as plain values. The wire is the business of src/rpc; a fake in a
// test implements `Plugin` directly.

/** A Kubernetes object, or its JSON text where one text serves several calls. */
export type PluginDocument = object | Uint8Array;

/** Who the plugin says it is. */
export interface PluginMetadata {
  name: string;
  version: string;
  displayName: string;
  description: string;
  projectUrl: string;
  repositoryUrl: string;
  license: string;
  licenseUrl: string;
  maturity: string;
  vendor: string;
  manifest: Record<string, string>;
}

export type LifecycleOperation = "patch" | "update" | "create" | "delete" | "evaluate";

/** One kind for which a plugin wants its lifecycle hook called; `group` is empty for the core group. */
export interface LifecycleCapability {
  group: string;
  kind: string;
  operations: readonly LifecycleOperation[];
}

/** What a plugin offers; lists hold the protocol's own names (`TYPE_ARCHIVE_WAL`), as `status.pluginStatus` shows them. */
export interface PluginCapabilities {
  services: readonly string[];
  operator: readonly string[];
  lifecycle: readonly LifecycleCapability[];
  wal: readonly string[];
  backup: readonly string[];
  reconciler: readonly string[];
  restoreJob: readonly string[];
  postgres: readonly string[];
  metrics: readonly string[];
}

/** Per call: an end before the default deadline, and cancellation. */
export interface PluginCallOptions {
  /** Replaces the call's default; `null` means none. */
  deadlineMs?: number | null;
  signal?: AbortSignal;
}

export interface PluginValidationError {
  /** At least one element, for example `["spec", "plugins", "0"]`. */
  path: readonly string[];
  value: string;
  message: string;
}

export interface ReconcilerResult {
  behavior: "continue" | "requeue" | "terminate";
  /** Only with `requeue`; 0 means at once, rate limited. */
  requeueAfterSeconds: number;
}

export interface WalArchiveRequest<D = PluginDocument> {
  cluster: D;
  /** Absolute path. */
  sourceFileName: string;
  parameters?: Record<string, string>;
  /** Absent when the client does not know the field. */
  checkEmptyWalArchive?: boolean;
}

export type WalRestoreMode = "recovery" | "rewind";

export interface WalRestoreRequest<D = PluginDocument> {
  cluster: D;
  /** File name without folder. */
  sourceWalName: string;
  /** Absolute path. */
  destinationFileName: string;
  parameters?: Record<string, string>;
  /** @default recovery */
  mode?: WalRestoreMode;
}

export interface WalStatus {
  /** Oldest in the archive; empty when there is none. */
  firstWal: string;
  lastWal: string;
  additionalInformation: Record<string, string>;
}

export interface PluginBackupRequest<D = PluginDocument> {
  cluster: D;
  backup: D;
  /** Those of the Backup object. */
  parameters?: Record<string, string>;
}

export interface PluginBackupResult {
  backupId: string;
  backupName: string;
  /** Milliseconds since the epoch, whole seconds; absent when the plugin gave none. */
  startedAt?: number;
  stoppedAt?: number;
  beginWal: string;
  endWal: string;
  beginLsn: string;
  endLsn: string;
  backupLabelFile: Uint8Array;
  tablespaceMapFile: Uint8Array;
  instanceId: string;
  online: boolean;
  metadata: Record<string, string>;
}

export interface PluginRestoreRequest<D = PluginDocument> {
  cluster: D;
  checkEmptyWalArchive?: boolean;
}

export interface PluginRestoreResult {
  /** Lines for the configuration of PostgreSQL. */
  restoreConfig: string;
  /** `NAME=VALUE` items. */
  envs: readonly string[];
}

export type ConfigurationOperation = "init" | "restore" | "reconcile" | "upgrade";

export interface EnrichConfigurationRequest<D = PluginDocument> {
  cluster: D;
  configs: Record<string, string>;
  operation: ConfigurationOperation;
}

export interface PluginMetric {
  name: string;
  help: string;
  /** Names of the labels that each sample has values for. */
  variableLabels: readonly string[];
  constLabels: Record<string, string>;
  type: "counter" | "gauge" | "untyped";
}

export interface PluginSample {
  name: string;
  value: number;
  /** Values of the labels, in the order of the definition. */
  variableLabels: readonly string[];
}

/** A plugin whose identity and capabilities are known. Each failure is a `PluginError`. */
export interface Plugin {
  readonly name: string;
  readonly metadata: PluginMetadata;
  readonly capabilities: PluginCapabilities;
  readonly operator: {
    validateClusterCreate(
      cluster: PluginDocument,
      options?: PluginCallOptions,
    ): Promise<readonly PluginValidationError[]>;
    validateClusterChange(
      clusters: { before: PluginDocument; after: PluginDocument },
      options?: PluginCallOptions,
    ): Promise<readonly PluginValidationError[]>;
    /** The text of a JSON patch; empty means no change. */
    mutateCluster(cluster: PluginDocument, options?: PluginCallOptions): Promise<Uint8Array>;
    /** A JSON object as text; empty leaves the status as it is. */
    setStatusInCluster(cluster: PluginDocument, options?: PluginCallOptions): Promise<string>;
    deregister(cluster: PluginDocument, options?: PluginCallOptions): Promise<void>;
  };
  readonly lifecycle: {
    /** The text of a JSON patch against the object; empty means no change. */
    hook(
      request: { operation: LifecycleOperation; cluster: PluginDocument; object: PluginDocument },
      options?: PluginCallOptions,
    ): Promise<Uint8Array>;
  };
  readonly reconciler: {
    pre(
      request: { cluster: PluginDocument; resource: PluginDocument },
      options?: PluginCallOptions,
    ): Promise<ReconcilerResult>;
    post(
      request: { cluster: PluginDocument; resource: PluginDocument },
      options?: PluginCallOptions,
    ): Promise<ReconcilerResult>;
  };
  readonly wal: {
    archive(request: WalArchiveRequest, options?: PluginCallOptions): Promise<void>;
    restore(request: WalRestoreRequest, options?: PluginCallOptions): Promise<void>;
    status(cluster: PluginDocument, options?: PluginCallOptions): Promise<WalStatus>;
    setFirstRequired(
      request: { cluster: PluginDocument; firstRequiredWal: string },
      options?: PluginCallOptions,
    ): Promise<void>;
  };
  readonly backup: {
    backup(request: PluginBackupRequest, options?: PluginCallOptions): Promise<PluginBackupResult>;
  };
  readonly restoreJob: {
    restore(request: PluginRestoreRequest, options?: PluginCallOptions): Promise<PluginRestoreResult>;
  };
  readonly postgres: {
    /** The complete new settings; empty keeps those of the request. */
    enrichConfiguration(
      request: EnrichConfigurationRequest,
      options?: PluginCallOptions,
    ): Promise<Record<string, string>>;
  };
  readonly metrics: {
    define(cluster: PluginDocument, options?: PluginCallOptions): Promise<readonly PluginMetric[]>;
    collect(cluster: PluginDocument, options?: PluginCallOptions): Promise<readonly PluginSample[]>;
  };
}

/** Plugins on loan from the pool, sorted by name; give them back by `release`, whatever happened. */
export interface PluginSession {
  readonly plugins: readonly Plugin[];
  get(name: string): Plugin | undefined;
  release(): void;
}

/** The plugins a process can reach, by name. */
export interface PluginPool {
  /** Names with an endpoint, sorted. */
  names(): readonly string[];
  /**
   * Connects to (or re-uses) the named plugins within a budget; all or nothing.
   *
   * @default budgetMs 5000
   */
  load(names: readonly string[], options?: { budgetMs?: number; signal?: AbortSignal }): Promise<PluginSession>;
  /** Closes every connection once its calls have ended, at the latest after the grace period. */
  close(options?: { graceMs?: number }): Promise<void>;
}

/**
 * `unknownPlugin`: no endpoint has that name. `unavailable`: worth another try, and no statement about anything else.
 * `notFound`: the plugin says that the thing is not there. `refused`: the same request will fail again. `protocol`: the
 * answer breaks the protocol.
 */
export type PluginErrorKind = "unknownPlugin" | "unavailable" | "notFound" | "refused" | "protocol";

/** A failure that came out of a plugin, or on the way to it. */
export class PluginError extends Error {
  override readonly name = "PluginError";
  readonly plugin: string;
  /** For example `WAL.Archive`. */
  readonly operation: string;
  readonly kind: PluginErrorKind;
  /** Name of the gRPC status, for example `FAILED_PRECONDITION`; absent when no status was involved. */
  readonly status: string | undefined;

  constructor(
    message: string,
    fields: { plugin: string; operation: string; kind: PluginErrorKind; status?: string; cause?: unknown },
  ) {
    super(message, { cause: fields.cause });
    this.plugin = fields.plugin;
    this.operation = fields.operation;
    this.kind = fields.kind;
    this.status = fields.status;
  }

  /** Whether another attempt with the same request may succeed. */
  get retryable(): boolean {
    return this.kind === "unavailable" || this.kind === "unknownPlugin";
  }
}

/** Whether an error, or any cause of it, is a PluginError (of one of the given kinds). */
export function findPluginError(error: unknown, ...kinds: PluginErrorKind[]): PluginError | undefined {
  for (let current = error, depth = 0; current instanceof Error && depth < 10; current = current.cause, depth++) {
    if (current instanceof PluginError && (kinds.length === 0 || kinds.includes(current.kind))) return current;
  }
  return undefined;
}
