import { randomUUID } from "node:crypto";
import { createEventSink } from "../kube/event-sink.ts";
import { parseRightNote } from "../plan/instance/right-note.ts";
import { findUpgradeObstacle } from "../plan/instance/upgrade-obstacle.ts";
import type { LogSpill, PostmasterHost } from "../ports/postmaster-host.ts";
import { BackupMode } from "./backup/backup-mode.ts";
import { BackupRunner } from "./backup/backup-runner.ts";
import { followPluginWindow } from "./backup/plugin-window.ts";
import { startWithoutCluster } from "./cached-start.ts";
import { loadServerCertificate } from "./certificates.ts";
import { ClusterWatch } from "./cluster-watch.ts";
import { createInstanceContext, waitForCluster } from "./connect.ts";
import { DeclaredObjects } from "./declarative/declared-objects.ts";
import { goArch, readExecutableHash, readPodUid } from "./identity.ts";
import { probedHost } from "./isolation/probed-host.ts";
import { addressOf, askForPromise } from "./isolation/promise-client.ts";
import { answerPromise, takeRelease } from "./isolation/promise-endpoint.ts";
import { tellRelease } from "./isolation/release-client.ts";
import { RightKeeper } from "./isolation/right-keeper.ts";
import { RightMemory } from "./isolation/right-memory.ts";
import { VolumeWatch } from "./isolation/volume-watch.ts";
import { Lifecycle } from "./lifecycle.ts";
import { LocalSql } from "./local-sql.ts";
import { createLogPipes } from "./log/log-pipes.ts";
import type { LogOutput } from "./logging.ts";
import { metricsHandler, QuerySources } from "./metrics-server.ts";
import { reportOperatingSystem } from "./operating-system.ts";
import { endWhenDeleted, wasDeletedByForce } from "./own-pod.ts";
import { createPodPlugins } from "./plugins/pod-plugins.ts";
import { Postmaster } from "./postmaster.ts";
import { PrimaryLease } from "./primary-lease.ts";
import { createClusterStatusWriter } from "./reconcile/cluster-status.ts";
import { Reconciler } from "./reconcile/reconciler.ts";
import { SlotReplicator } from "./reconcile/slot-replicator.ts";
import { SecretReader } from "./secret-reader.ts";
import type { InstanceSettings } from "./settings.ts";
import { quitSidecars } from "./sidecars.ts";
import { StatusCollector } from "./status.ts";
import { createInstanceWal } from "./wal/create-wal.ts";
import { followKeptWal } from "./wal/former-wal.ts";
import { createLocalServer, localHandler } from "./web/local-server.ts";
import { ManagerUpgrade } from "./web/manager-upgrade.ts";
import { ProbeChecks } from "./web/probe-checks.ts";
import { createRemoteServer, remoteHandler } from "./web/remote-server.ts";

/** How often parts that follow the Cluster but do not hang on it look again. */
const followMs = 1_000;

/** Runs one instance until the container has to end (reference: instance manager §3). */
export async function runInstance(
  settings: InstanceSettings,
  parent: PostmasterHost,
  output: LogOutput,
): Promise<void> {
  const logger = output.logger.child({ logger: "instance-manager" });
  const context = await createInstanceContext(settings, logger);
  const { state, paths, files, kube } = context;
  const volumes = new VolumeWatch(context, parent);
  const host = probedHost(parent, volumes);
  const stop = new AbortController();
  const { signal } = stop;

  await reportOperatingSystem(context);
  const hello = await host.hello();
  // None of them gets to run any more, though a dead disk may keep their end from being seen.
  const diskKilled = hello.killed === "disk";
  if (diskKilled) await volumes.noteKill();
  await files.makeDirectory(paths.log, 0o700);
  await files.makeDirectory(paths.tmp);
  await files.makeDirectory(paths.socketDir);
  const spill = await host.takeLogs();
  const readLogs = async (kept: Partial<LogSpill> = {}) => {
    const end = new AbortController();
    const read = createLogPipes({
      logDir: paths.log,
      ...(kept.path === undefined ? {} : { spillPath: kept.path }),
      droppedLines: kept.droppedLines ?? 0,
      logger,
      write: output.writeLine,
      format: output.format,
      signal: end.signal,
    });
    await read.start();
    const stop = () => {
      end.abort();
      return read.done;
    };
    return { stop };
  };
  let pipes = await readLogs(spill);
  logger.info("Starting the instance manager", { adopting: hello.postmasterPid ?? null });

  const podUid = await readPodUid(files, paths, settings.environment);
  const identity = {
    sessionId: randomUUID(),
    executableHash: readExecutableHash(process.argv[1] ?? ""),
    arch: goArch(),
  };
  const secrets = new SecretReader(kube, context.clock, settings.namespace);
  const plugins = createPodPlugins({ ...context, environment: settings.environment });
  context.plugins = plugins;
  const lease = new PrimaryLease({
    kube,
    clock: context.clock,
    logger,
    state,
    podName: settings.podName,
    podUid,
    namespace: settings.namespace,
    clusterName: settings.clusterName,
    onRight: async (right) => {
      const kept = memory.remember(right);
      keeper.follow(right);
      await kept;
    },
    onEngaged: (isEngaged) => volumes.stake("right", isEngaged),
    onCluster: (cluster) => watch.observeWrite(cluster),
    tell: (voters, notice) => tellRelease(context, voters, notice),
  });
  const memory = new RightMemory({
    host,
    podName: settings.podName,
    timings: () => lease.timings,
    addressOf: (voter) => addressOf(context, voter),
  });
  const postmaster = new Postmaster(context, host);
  let finished = false;
  const ownPod = { kube, namespace: settings.namespace, podName: settings.podName, podUid };
  const terminate = () => void lifecycle.terminateOnSignal(() => wasDeletedByForce(ownPod));
  const finish = async (code: number) => {
    if (finished) return;
    finished = true;
    stop.abort();
    await Promise.all([remote.close(), local.close(), metrics.close(), statusCollector.close(), backups.close()]);
    await Promise.all([wal.close(), plugins.close()]);
    await pipes.stop();
    if (code === 0) await quitSidecars();
    logger.info("The instance manager ends", { code });
    output.flush();
    // The launcher ends what is left by SIGTERM first; from here on that must end this process at once.
    process.off("SIGTERM", terminate);
    process.off("SIGINT", terminate);
    await host.exit(code);
  };
  const wake = () => reconciler.wake();
  const lifecycle = new Lifecycle({ context, postmaster, lease, wake, finish });
  const keeper = new RightKeeper({
    lease,
    lifecycle,
    host,
    clock: context.clock,
    random: context.random,
    logger,
    podName: settings.podName,
    podUid,
    cluster: `${settings.namespace}/${settings.clusterName}`,
    isEnforced: () => state.cluster?.spec.probes?.liveness?.isolationCheck?.enabled ?? true,
    isRunning: () => postmaster.pid !== undefined,
    ask: (question, signal) => askForPromise(context, question, signal),
    wake,
  });
  const watch = new ClusterWatch(context, kube, () => {
    lifecycle.observeCluster();
    void volumes.follow();
    reconciler.wake();
  });
  const events = createEventSink(kube, {
    component: "instance-manager",
    instance: settings.podName,
    clock: context.clock,
    logger,
  });
  const status = createClusterStatusWriter(context, (cluster) => watch.observeWrite(cluster), events);
  const manager = { goArch: identity.arch, hash: identity.executableHash };
  const reconciler = new Reconciler({
    context,
    postmaster,
    lifecycle,
    lease,
    secrets,
    status,
    volumes,
    podUid,
    manager,
  });
  const slots = new SlotReplicator(context, postmaster);
  const declared = new DeclaredObjects(context, kube, secrets);
  const sources = new QuerySources(context, secrets);

  const statusCollector = new StatusCollector(context, identity);
  const probes = new ProbeChecks(context, postmaster, new LocalSql(context, { queryTimeoutMs: 4_000 }), (isolated) => {
    state.isolated = isolated;
    lifecycle.observeCluster();
  });
  const backupMode = new BackupMode(context);
  const remote = createRemoteServer(
    remoteHandler({
      context,
      backupMode,
      status: statusCollector,
      probes,
      leaseReport: () => ({ ...lease.report(), ...backups.report() }),
      update: (request, exchange) => upgrade.answer(request, exchange),
      promise: (request) => answerPromise({ context, promise: (question) => lease.promise(question) }, request),
      release: (request) => takeRelease({ context, note: (notice) => lease.noteRelease(notice) }, request),
    }),
    { tls: settings.statusTls },
  );
  const metrics = createRemoteServer(metricsHandler(context, context.sql, sources), { tls: settings.metricsTls });
  const wal = createInstanceWal(context, { status, plugins });
  context.archiveWal = (path) => wal.requests.archiveAnyway(path);
  const backups = new BackupRunner({ context, plugins, status, events, inTree: () => wal.inTree() });
  const upgrade = new ManagerUpgrade({
    context,
    arch: identity.arch,
    obstacle: () => {
      const runs = backups.running().length + (backupMode.isOpen ? 1 : 0);
      return findUpgradeObstacle({ state, busy: lifecycle.busy, backups: runs, deadlineMs: keeper.deadlineMs() });
    },
    handOver: async (staged) => {
      await pipes.stop();
      output.flush();
      await host.upgrade(staged).catch(async (error) => {
        pipes = await readLogs();
        throw error;
      });
    },
  });
  const local = createLocalServer(localHandler(context, status, (name) => backups.start(name)));
  const applyCertificate = () => {
    if (!state.serverCertificate) return;
    remote.setCertificate(state.serverCertificate);
    metrics.setCertificate(state.serverCertificate);
  };

  process.on("SIGTERM", terminate);
  process.on("SIGINT", terminate);
  void host.lost.then(() => {
    if (!finished) process.exit(1);
  });

  await loadServerCertificate(context);
  applyCertificate();
  await wal.server.listen(files, paths.walSocket);
  await remote.listen(settings.statusPort);
  await local.listen(settings.localPort);
  await metrics.listen(settings.metricsPort);
  logger.info("Starting webserver", { address: `:${settings.statusPort}`, hasTLS: settings.statusTls });

  await volumes.stake("server", hello.postmasterPid !== undefined && !diskKilled);
  if (diskKilled) await lease.releaseKilled();
  else if (hello.postmasterPid !== undefined) {
    lifecycle.adopt(hello.postmasterPid);
    const note = hello.note === undefined ? undefined : parseRightNote(hello.note);
    state.rememberedPeers = note?.peers ?? {};
    // Unreadable files prove no standby, and a right that another one took must be found lost at once.
    if ((await context.data.role().catch(() => "primary")) === "primary") lease.adoptPrimary(hello.deadlineMs, note);
    reconciler.adopted();
  }
  if (hello.pendingSignal) terminate();
  reconciler.onFilesRefreshed = applyCertificate;

  const background = [
    lease.run(signal),
    keeper.run(signal),
    watch.run(signal),
    reconciler.run(signal),
    volumes.recover(signal).then(wake),
    slots.run(signal),
    declared.run(signal),
    followQuerySources(context, sources, signal),
    followKeptWal(context, signal),
    followPluginWindow(context, plugins, status, signal),
    backupMode.run(signal),
    backups.endUnfinished(signal).catch(() => undefined),
    endWhenDeleted(
      { ...ownPod, clock: context.clock, isUp: () => postmaster.pid !== undefined, end: terminate },
      signal,
    ),
  ];
  upgrade.clean().catch((error) => logger.warning("The files of the last upgrade are still there", { error }));
  const cached = { context, lifecycle, postmaster, podUid, adopted: () => reconciler.adopted() };
  void warmUp(context, reconciler, {
    isUp: () => postmaster.pid !== undefined,
    failed: async (error, attempt) => (diskKilled ? undefined : startWithoutCluster(cached, error, attempt)),
  });
  const failure = await Promise.all(background).then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!signal.aborted) {
    logger.error("A part of the instance manager failed", { error: failure });
    await lifecycle.terminate("error", 1);
  }
  // The end is under way in `finish`; returning before it asked the launcher would let the launcher start a new runtime.
  await host.lost;
}

/** A first live read, so that a fresh pod does not wait for the watch to be set up. */
async function warmUp(
  context: Awaited<ReturnType<typeof createInstanceContext>>,
  reconciler: Reconciler,
  options: { isUp: () => boolean; failed: (error: unknown, attempt: number) => Promise<void> },
): Promise<void> {
  const failed = (error: unknown, attempt: number) =>
    options
      .failed(error, attempt)
      .catch((cause) => context.logger.error("PostgreSQL could not be started without the Cluster", { error: cause }));
  try {
    const cluster = await waitForCluster(context, failed);
    context.state.cluster ??= cluster;
    reconciler.wake();
  } catch (error) {
    // With PostgreSQL up, an API server that is away is no reason to touch anything; the watch goes on trying.
    if (!options.isUp()) context.logger.error("The Cluster could not be read yet; still trying", { error });
  }
}

async function followQuerySources(
  context: Awaited<ReturnType<typeof createInstanceContext>>,
  sources: QuerySources,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    if (context.state.cluster) await sources.refresh(signal).catch(() => undefined);
    await context.clock.sleep(followMs, signal).catch(() => undefined);
  }
}
