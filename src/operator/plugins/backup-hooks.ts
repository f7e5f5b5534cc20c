import { enabledPlugins } from "../../api/cluster-facts.ts";
import type { Backup } from "../../api/generated/backup.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import type { HookVerdict } from "../../plan/cluster/plugins.ts";
import { runReconcilerHooks } from "../../rpc/calls/reconciler.ts";
import type { PluginDirectory } from "./plugin-directory.ts";

/** Runs the hooks of the cluster's own plugins around a pass over a Backup (reference: CNPG-I §3.5). */
export async function runBackupHooks(
  directory: PluginDirectory,
  stage: "pre" | "post",
  { cluster, backup }: { cluster: Cluster; backup: Backup },
  signal: AbortSignal,
): Promise<HookVerdict> {
  // Those of external clusters have no say in this cluster's backups.
  const { externalClusters: _, ...own } = cluster.spec;
  const session = await directory.load(enabledPlugins({ ...cluster, spec: own }), { signal });
  try {
    return await runReconcilerHooks(session.plugins, stage, { cluster, resource: backup }, { signal });
  } finally {
    session.release();
  }
}
