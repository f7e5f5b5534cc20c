import type { PluginCapabilities, PluginMetadata } from "../ports/plugin.ts";
import { backupRpcs } from "./wire/backup.ts";
import { identityRpcs } from "./wire/identity.ts";
import { lifecycleRpcs } from "./wire/lifecycle.ts";
import { metricsRpcs } from "./wire/metrics.ts";
import { operatorRpcs } from "./wire/operator.ts";
import { postgresRpcs } from "./wire/postgres.ts";
import { reconcilerRpcs } from "./wire/reconciler.ts";
import { restoreJobRpcs } from "./wire/restore-job.ts";
import type { Rpc } from "./wire/rpc.ts";
import { walRpcs } from "./wire/wal.ts";

/** Makes one call of a plugin, deadlines and errors included. */
export type Caller = <Req, In, Res>(rpc: Rpc<Req, In, Res>, request: Req) => Promise<Res>;

/** Who a plugin is and what it offers. */
export interface PluginIdentity {
  metadata: PluginMetadata;
  capabilities: PluginCapabilities;
}

/** Asks in the order that Go clients use: identity first, then the capabilities of each service it claims. */
export async function loadIdentity(call: Caller): Promise<PluginIdentity> {
  const metadata = await call(identityRpcs.getPluginMetadata, undefined);
  const services = await call(identityRpcs.getPluginCapabilities, undefined);
  const ask = async <T>(service: string, rpc: Rpc<undefined, undefined, readonly T[]>): Promise<readonly T[]> =>
    services.includes(service) ? call(rpc, undefined) : [];
  return {
    metadata,
    capabilities: {
      services,
      operator: await ask("TYPE_OPERATOR_SERVICE", operatorRpcs.getCapabilities),
      lifecycle: await ask("TYPE_LIFECYCLE_SERVICE", lifecycleRpcs.getCapabilities),
      wal: await ask("TYPE_WAL_SERVICE", walRpcs.getCapabilities),
      backup: await ask("TYPE_BACKUP_SERVICE", backupRpcs.getCapabilities),
      reconciler: await ask("TYPE_RECONCILER_HOOKS", reconcilerRpcs.getCapabilities),
      restoreJob: await ask("TYPE_RESTORE_JOB", restoreJobRpcs.getCapabilities),
      postgres: await ask("TYPE_POSTGRES", postgresRpcs.getCapabilities),
      metrics: await ask("TYPE_METRICS", metricsRpcs.getCapabilities),
    },
  };
}
