import { type Plugin, type PluginCallOptions, type PluginCapabilities, PluginError } from "../ports/plugin.ts";
import type { PluginIdentity } from "./load-identity.ts";
import { backupRpcs } from "./wire/backup.ts";
import { lifecycleRpcs } from "./wire/lifecycle.ts";
import { metricsRpcs } from "./wire/metrics.ts";
import { operatorRpcs } from "./wire/operator.ts";
import { postgresRpcs } from "./wire/postgres.ts";
import { reconcilerRpcs } from "./wire/reconciler.ts";
import { restoreJobRpcs } from "./wire/restore-job.ts";
import type { Rpc } from "./wire/rpc.ts";
import { walRpcs } from "./wire/wal.ts";

/** Makes one call with the caller's options. */
export type OptionsCaller = <Req, In, Res>(
  rpc: Rpc<Req, In, Res>,
  request: Req,
  options: PluginCallOptions | undefined,
) => Promise<Res>;

/**
 * The calls of one plugin. A call outside of its capabilities fails here, so that a plugin never sees what it did not
 * offer (some panic on it).
 */
export function createLoadedPlugin(name: string, identity: PluginIdentity, call: OptionsCaller): Plugin {
  const { metadata, capabilities } = identity;

  /** A method behind one capability; without its name, behind any of the group. */
  function method<Req, In, Res>(rpc: Rpc<Req, In, Res>, group: keyof PluginCapabilities, capability?: string) {
    return async (request: Req, options?: PluginCallOptions): Promise<Res> => {
      const list: readonly unknown[] = capabilities[group];
      if (capability === undefined ? list.length === 0 : !list.includes(capability)) {
        throw notOffered(name, rpc.label, capability ?? group);
      }
      return call(rpc, request, options);
    };
  }

  return {
    name,
    metadata,
    capabilities,
    operator: {
      validateClusterCreate: method(operatorRpcs.validateClusterCreate, "operator", "TYPE_VALIDATE_CLUSTER_CREATE"),
      validateClusterChange: method(operatorRpcs.validateClusterChange, "operator", "TYPE_VALIDATE_CLUSTER_CHANGE"),
      mutateCluster: method(operatorRpcs.mutateCluster, "operator", "TYPE_MUTATE_CLUSTER"),
      setStatusInCluster: method(operatorRpcs.setStatusInCluster, "operator", "TYPE_SET_STATUS_IN_CLUSTER"),
      deregister: method(operatorRpcs.deregister, "operator", "TYPE_DEREGISTER"),
    },
    lifecycle: { hook: method(lifecycleRpcs.hook, "lifecycle") },
    // Which capability a hook needs depends on the object; the loops over plugins select by it.
    reconciler: { pre: method(reconcilerRpcs.pre, "reconciler"), post: method(reconcilerRpcs.post, "reconciler") },
    wal: {
      archive: method(walRpcs.archive, "wal", "TYPE_ARCHIVE_WAL"),
      restore: method(walRpcs.restore, "wal", "TYPE_RESTORE_WAL"),
      status: method(walRpcs.status, "wal", "TYPE_STATUS"),
      setFirstRequired: method(walRpcs.setFirstRequired, "wal", "TYPE_SET_FIRST_REQUIRED"),
    },
    backup: { backup: method(backupRpcs.backup, "backup", "TYPE_BACKUP") },
    restoreJob: { restore: method(restoreJobRpcs.restore, "restoreJob", "KIND_RESTORE") },
    postgres: {
      enrichConfiguration: method(postgresRpcs.enrichConfiguration, "postgres", "TYPE_ENRICH_CONFIGURATION"),
    },
    metrics: {
      define: method(metricsRpcs.define, "metrics", "TYPE_METRICS"),
      collect: method(metricsRpcs.collect, "metrics", "TYPE_METRICS"),
    },
  };
}

function notOffered(plugin: string, operation: string, capability: string): PluginError {
  return new PluginError(
    `plugin ${plugin} does not offer ${operation} (${capability}); remove what asks for it, or use a version that does`,
    { plugin, operation, kind: "refused" },
  );
}
