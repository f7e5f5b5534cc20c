import type { Cluster } from "../api/generated/cluster.ts";
import { loadInClusterConnection } from "../kube/connection.ts";
import { createKubeApi } from "../kube/create-kube-api.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { resources } from "../kube/resources.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import { createFiles } from "../process/files.ts";
import { createProcesses } from "../process/processes.ts";
import { retry } from "../runtime/backoff.ts";
import { bootClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import { createSqlConnector } from "../sql/pg-connector.ts";
import { DataFolder } from "./data-folder.ts";
import { readSystemUser } from "./identity.ts";
import type { InstanceContext } from "./instance-context.ts";
import { instancePaths } from "./instance-paths.ts";
import { createInstanceState } from "./instance-state.ts";
import type { InstanceSettings } from "./settings.ts";

/** Opens the connection to the API server: of the pod, or of the kubeconfig file that a test names. */
async function connectKube(clock: Clock, environment: Readonly<Record<string, string>>): Promise<KubeClient> {
  const kubeconfig = environment["KUBECONFIG"];
  if (kubeconfig) {
    const { loadKubeconfigConnection } = await import("../kube/kubeconfig.ts");
    return createKubeApi(loadKubeconfigConnection(kubeconfig));
  }
  return createKubeApi(loadInClusterConnection({ clock }));
}

/** Builds the context on the real machine. */
export async function createInstanceContext(
  settings: InstanceSettings,
  logger: Logger,
): Promise<InstanceContext & { kube: KubeClient }> {
  const files = createFiles();
  const processes = createProcesses();
  const paths = instancePaths(settings);
  return {
    settings,
    paths,
    state: createInstanceState(),
    data: new DataFolder(files, processes, paths, settings.environment),
    files,
    processes,
    kube: await connectKube(bootClock, settings.environment),
    sql: createSqlConnector(),
    localSessions: new Set(),
    clock: bootClock,
    random: systemRandom,
    logger,
    systemUser: await readSystemUser(files),
  };
}

/**
 * Reads the Cluster, patiently: 5 attempts, 1 s first, then three times as long each. `failed` is called after each one that failed,
 * before the next.
 */
export async function waitForCluster(
  context: InstanceContext,
  failed: (error: unknown, attempt: number) => Promise<void> = async () => undefined,
): Promise<Cluster> {
  const { kube, clock, random, settings, logger } = context;
  const key = { namespace: settings.namespace, name: settings.clusterName };
  return retry(
    async (attempt) => {
      try {
        return await kube.get(resources.clusters, key, { timeoutMs: 10_000 });
      } catch (error) {
        logger.warning("Could not read the Cluster", { error, attempt });
        await failed(error, attempt);
        throw error;
      }
    },
    { policy: { maxAttempts: 5, baseMs: 1_000, maxMs: 60_000, factor: 3, jitter: 0.1 }, clock, random },
  );
}
