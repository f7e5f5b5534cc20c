import { withRecoveryWindow } from "../../plan/instance/backup.ts";
import { readPluginWindow } from "../../plan/instance/plugin-window.ts";
import type { InstanceContext } from "../instance-context.ts";
import { instancePlugins } from "../plugins/instance-plugins.ts";
import type { PodPlugins } from "../plugins/pod-plugins.ts";
import type { ClusterStatusWriter } from "../reconcile/cluster-status.ts";
import { withType } from "../wal/archive-file.ts";
import { announceFirstRequired } from "./first-required.ts";

const everyMs = 60_000;
/** The first look, and the next one after one that failed: what a new primary tells is to be true soon. */
const soonMs = 5_000;
/** Every so many looks the plugin hears what its retention has to spare; listing the Backups costs more than the look. */
const announceEvery = 10;
const callLimitMs = 5_000;

/** Keeps the Cluster's record of what can be restored true to the plugin's archive; the current primary's work. */
export async function followPluginWindow(
  context: InstanceContext,
  plugins: PodPlugins,
  status: Pick<ClusterStatusWriter, "update">,
  signal: AbortSignal,
): Promise<void> {
  let pauseMs = soonMs;
  for (let look = 0; !signal.aborted; look++) {
    await context.clock.sleep(pauseMs, signal).catch(() => undefined);
    if (signal.aborted) return;
    pauseMs = everyMs;
    await refreshPluginWindow(context, plugins, status, signal).catch((error: unknown) => {
      pauseMs = soonMs;
      context.logger.debug("The plugin could not be asked what its archive can restore", { error });
    });
    if (look % announceEvery !== 0) continue;
    await announceFirstRequired(context, plugins, signal).catch((error: unknown) =>
      context.logger.debug("The plugin could not be told which WAL is needed", { error }),
    );
  }
}

/** One look. */
export async function refreshPluginWindow(
  context: InstanceContext,
  plugins: PodPlugins,
  status: Pick<ClusterStatusWriter, "update">,
  signal: AbortSignal,
): Promise<void> {
  const { cluster } = context.state;
  if (!cluster || cluster.status?.currentPrimary !== context.settings.podName) return;
  const names = instancePlugins(cluster, { withArchiver: true });
  if (names.length === 0) return;
  const samples = await plugins.use(
    names,
    async (session) => {
      const able = session.plugins.filter(({ capabilities }) => capabilities.metrics.includes("TYPE_METRICS"));
      const options = { deadlineMs: callLimitMs, signal };
      return (await Promise.all(able.map((plugin) => plugin.metrics.collect(withType(cluster), options)))).flat();
    },
    { signal },
  );
  const window = readPluginWindow(samples);
  // Only when something differs: an unchanged record costs no request.
  if (!window || withRecoveryWindow(cluster.status, window) === cluster.status) return;
  await status.update((current) => withRecoveryWindow(current, window), signal);
}
