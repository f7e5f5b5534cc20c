// Modes `instance` and `restore`: beside PostgreSQL in an instance's pod, and in a recovery Job.
import { restoreBaseBackup } from "../../archive/base/restore-base-backup.ts";
import { takeBaseBackup } from "../../archive/base/take-base-backup.ts";
import { createEventSink } from "../../kube/event-sink.ts";
import type { Clock, Random } from "../../ports/clock.ts";
import type { Files } from "../../ports/files.ts";
import type { KubeApi } from "../../ports/kube-api.ts";
import type { Logger } from "../../ports/logger.ts";
import type { SqlConnector } from "../../ports/sql-session.ts";
import type { SentRequests } from "../../runtime/program-metrics.ts";
import type { Runnable } from "../../runtime/runnable.ts";
import { createRunnableGroups } from "../../runtime/runnable-groups.ts";
import { createBulkFiles } from "../../store/bulk-files.ts";
import type { StoreEnvironment } from "../../store/create-store.ts";
import { createTreeFiles } from "../../store/tree-files.ts";
import { createPluginServer } from "../framework/create-plugin-server.ts";
import type { PluginServices } from "../framework/services.ts";
import { createBackupService } from "./backup-service.ts";
import { createBaseEngine } from "./base-engine.ts";
import { CachedReader } from "./cached-reader.ts";
import { pluginIdentity } from "./identity.ts";
import { createMaintenanceWorker, type MaintenanceWorker } from "./maintenance.ts";
import { createDispensableMetricsServer } from "./metrics-server.ts";
import { createMetricsService } from "./metrics-service.ts";
import { createRestoreService } from "./restore-service.ts";
import { parseSidecarEnvironment, type SidecarEnvironment } from "./sidecar-environment.ts";
import { createStoreAccess } from "./store-access.ts";
import { createWalBound } from "./wal-bound.ts";
import { createWalService } from "./wal-service.ts";

export interface SidecarOptions {
  mode: "instance" | "restore";
  api: KubeApi;
  clock: Clock;
  random: Random;
  logger: Logger;
  files: Files;
  /** Environment of the process. */
  env: StoreEnvironment;
  /** Folder of the plugin sockets. @default /plugins */
  socketFolder?: string;
  /** Folder of the log on a volume of its own. @default /var/lib/postgresql/wal/pg_wal */
  walVolume?: string;
  /** Folder for the file that proves an archive to be readable. @default /controller/recovery */
  scratchFolder?: string;
  /** Folder of the certificate authorities. @default /barman-certificates */
  certificates?: string;
  /** Where the process tells of itself; absent: nowhere. */
  metrics?: { address: { host?: string; port: number }; requests: () => readonly SentRequests[] } | undefined;
  /** Time that calls under way get when the pod ends, milliseconds. @default 25000 */
  graceMs?: number;
}

/** Serves on the pod's socket until the signal aborts; calls under way are let to end. */
export async function runSidecar(options: SidecarOptions, signal: AbortSignal): Promise<void> {
  const { mode, clock, logger, files } = options;
  const environment = parseSidecarEnvironment(mode, options.env);
  logger.info(`Starting barman cloud ${mode} plugin`);
  await sweepSpool(environment.spoolFolder, files);
  const parts = assemble(options, environment);
  const groups = createRunnableGroups({ logger, clock, stopTimeoutMs: (options.graceMs ?? 25_000) + 5_000 });
  if (parts.worker) groups.add("others", parts.worker);
  if (options.metrics) groups.add("others", createMetricsListener(options.metrics, options));
  groups.add("servers", {
    name: "plugin server",
    async run(stop) {
      const folder = options.socketFolder;
      const server = await createPluginServer({
        identity: pluginIdentity,
        services: parts.services,
        listen: { kind: "socket", ...(folder === undefined ? {} : { folder }) },
        logger,
      });
      await untilAborted(stop);
      // What takes hours does not end within the grace; WAL does.
      parts.stop();
      await server.stop({ graceMs: options.graceMs ?? 25_000 });
      await parts.close();
    },
  });
  const events = parts.events;
  try {
    await groups.run(signal);
  } finally {
    await Promise.race([events.flush(), clock.sleep(1_000)]);
  }
}

/** The library behind metrics is loaded once somebody wants to know: in most pods nobody ever does. */
function createMetricsListener(
  { address, requests }: NonNullable<SidecarOptions["metrics"]>,
  { clock, logger }: Pick<SidecarOptions, "clock" | "logger">,
): Runnable {
  const load = async () => {
    const { createMetrics } = await import("../../runtime/metrics.ts");
    const created = createMetrics({ processMetrics: true });
    created.forRequests(requests);
    return created;
  };
  let loaded: ReturnType<typeof load> | undefined;
  const metrics = () => {
    loaded ??= load();
    return loaded;
  };
  return createDispensableMetricsServer({ address, metrics, clock, logger });
}

function assemble(options: SidecarOptions, environment: SidecarEnvironment) {
  const { mode, api, clock, logger, files, env } = options;
  const { namespace, spoolFolder, podName } = environment;
  const reader = new CachedReader(api, clock);
  const certificates = options.certificates;
  const access = createStoreAccess({
    reader,
    files,
    namespace,
    env,
    ...(certificates === undefined ? {} : { certificates }),
  });
  const bound = createWalBound(files, spoolFolder);
  const events = createEventSink(api, { component: "barman-cloud-instance", instance: podName, clock, logger });
  const common = { ...options, ...environment, bulk: createBulkFiles(), access, reader, bound, events };
  let worker: MaintenanceWorker | undefined;
  if (mode === "instance") worker = createMaintenanceWorker(common);
  const seen = (cluster: Parameters<MaintenanceWorker["seen"]>[0]) => worker?.seen(cluster);
  const wal = createWalService({ ...common, seen });
  const closing = new AbortController();
  const engine = createBaseEngine({
    ...common,
    tree: createTreeFiles(),
    sql: lazySql,
    environment,
    takeBaseBackup,
    restoreBaseBackup,
    signal: closing.signal,
  });
  const services: PluginServices =
    mode === "instance"
      ? {
          wal: wal.service,
          backup: createBackupService({ ...common, ...engine }),
          metrics: createMetricsService(reader, seen),
        }
      : { restoreJob: createRestoreService({ ...common, ...engine }), wal: wal.service };
  const stop = () => closing.abort(new Error("the pod is being stopped"));
  return { services, worker, events, stop, close: wal.close };
}

/** The library is needed while a backup runs only. */
const lazySql: SqlConnector = {
  async connect(target, signal) {
    const { createSqlConnector } = await import("../../sql/pg-connector.ts");
    return createSqlConnector().connect(target, signal);
  },
};

/** An older release kept markers and half-fetched files right in this folder; nobody can tell what they are worth. */
async function sweepSpool(folder: string, files: Files): Promise<void> {
  await files.makeDirectory(folder, 0o700);
  const ours: readonly string[] = ["archived", "prefetched", "first-required"];
  for (const name of await files.list(folder)) {
    if (!ours.includes(name)) await files.remove(`${folder}/${name}`, { recursive: true });
  }
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
