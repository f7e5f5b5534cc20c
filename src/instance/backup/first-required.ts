import type { Cluster } from "../../api/generated/cluster.ts";
import { resources } from "../../kube/resources.ts";
import { firstRequiredWal } from "../../plan/instance/plugin-window.ts";
import type { Plugin } from "../../ports/plugin.ts";
import type { InstanceContext } from "../instance-context.ts";
import { instancePlugins } from "../plugins/instance-plugins.ts";
import type { PodPlugins } from "../plugins/pod-plugins.ts";
import { withType } from "../wal/archive-file.ts";

const callLimitMs = 5_000;

/** What each plugin was told last by this process. */
const told = new Map<string, string>();

/** Tells plugins that want to know it which WAL the oldest backup needs; the current primary's work, repeated only when it changes. */
export async function announceFirstRequired(
  context: InstanceContext,
  plugins: PodPlugins,
  signal: AbortSignal,
): Promise<void> {
  const { state, settings, kube, logger } = context;
  const { cluster } = state;
  if (!cluster || cluster.status?.currentPrimary !== settings.podName) return;
  const names = instancePlugins(cluster, { withArchiver: true });
  if (names.length === 0) return;
  await plugins.use(
    names,
    async (session) => {
      const able = session.plugins.filter(({ capabilities }) => capabilities.wal.includes("TYPE_SET_FIRST_REQUIRED"));
      if (able.length === 0) return;
      const backups = await kube.list(resources.backups, { namespace: settings.namespace, signal });
      for (const plugin of able) {
        const wal = firstRequiredWal(cluster, plugin.name, backups) ?? "";
        if (told.get(plugin.name) === wal) continue;
        // Without Backups an announcement is taken back, and none is made.
        if (wal !== "" || (await isAnnounced(plugin, cluster, signal))) {
          const request = { cluster: withType(cluster), firstRequiredWal: wal };
          await plugin.wal.setFirstRequired(request, { deadlineMs: callLimitMs, signal });
          logger.info("Told the plugin which WAL file the oldest backup needs", { pluginName: plugin.name, wal });
        }
        told.set(plugin.name, wal);
      }
    },
    { signal },
  );
}

/** Whether the plugin still knows of an announcement, perhaps of the process before this one; only ours tells. */
async function isAnnounced(plugin: Plugin, cluster: Cluster, signal: AbortSignal): Promise<boolean> {
  if (!plugin.capabilities.wal.includes("TYPE_STATUS")) return false;
  const { additionalInformation } = await plugin.wal.status(withType(cluster), { deadlineMs: callLimitMs, signal });
  return Boolean(additionalInformation["firstRequiredWal"]);
}
