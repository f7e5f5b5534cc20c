import { hostname } from "node:os";
import { createEventSink } from "../kube/event-sink.ts";
import { resources } from "../kube/resources.ts";
import { createController } from "../runtime/controller.ts";
import { createMetrics } from "../runtime/metrics.ts";
import type { Runnable } from "../runtime/runnable.ts";
import { createRunnableGroups } from "../runtime/runnable-groups.ts";
import { createWorkQueue } from "../runtime/work-queue.ts";
import { createAdmissionGuard } from "./admission-guard.ts";
import { createBackupPrograms } from "./backup/backup-programs.ts";
import { createClusterReconciler } from "./cluster-controller.ts";
import { createDatabaseRolePrograms } from "./database-role/database-role-programs.ts";
import type { ExecutorOptions } from "./execute.ts";
import { whenClusterGone } from "./gone-clusters.ts";
import { createKindProbe } from "./kind-probe.ts";
import { createLeadership } from "./leadership.ts";
import { LeaseSilence } from "./lease-silence.ts";
import { loadSettings } from "./load-settings.ts";
import { ManagerUploads } from "./manager-uploads.ts";
import { createClusterObserver } from "./observe.ts";
import { gatherFacts } from "./operator-facts.ts";
import type { OperatorOptions } from "./operator-options.ts";
import { createMetricsServer, createWebhook } from "./operator-servers.ts";
import { createOrphanSweep } from "./orphan-sweep.ts";
import { createPluginDirectory } from "./plugins/plugin-directory.ts";
import { reviewByPlugins } from "./plugins/review.ts";
import { concernsPlugins, withoutPlugins } from "./plugins/without-plugins.ts";
import { createDemotedPrimary } from "./replica-transition.ts";
import { RolloutSlots } from "./rollout-slots.ts";
import { createSelectedPods } from "./selected-pods.ts";
import { createStatusClient } from "./status-client.ts";
import { createOperatorStores } from "./stores.ts";
import { untilAborted } from "./until-aborted.ts";
import { subscribeWatches } from "./watches.ts";

/** Runs the operator until the signal aborts. */
export async function runOperator(options: OperatorOptions, signal: AbortSignal): Promise<void> {
  const { api, clock, logger, flags } = options;
  const settings = await loadSettings(options, signal);
  const facts = await gatherFacts(options, settings, signal);
  const metrics = createMetrics({ processMetrics: true });
  if (options.requestCounts) metrics.forRequests(options.requestCounts);
  const groups = createRunnableGroups({ logger, clock, stopTimeoutMs: 8_000 });
  const sink = (component: string) => createEventSink(api, { component, instance: hostname(), clock, logger });
  const events = sink("cloudnative-pg");
  const backupEvents = {
    backups: sink("cloudnative-pg-backup"),
    schedules: sink("cloudnative-pg-scheduledbackup"),
  };
  const identity = facts.identity;
  const statusClient = createStatusClient({ identity });
  const { operatorNamespace, pullSecretName, monitoringQueriesConfigMap, monitoringQueriesSecret } = settings.context;
  const sourceNames = [pullSecretName, monitoringQueriesConfigMap, monitoringQueriesSecret].filter((it) => it !== "");
  const { stores, parts } = createOperatorStores({
    source: api,
    clock,
    logger,
    watchNamespaces: settings.watchNamespaces,
    operatorNamespace,
    sourceNames,
  });
  const rolloutSlots = new RolloutSlots({ clusters: stores.clusters, pods: stores.pods, clock });
  const uploads = new ManagerUploads({
    open: (goArch) => facts.managers.open(goArch),
    send: async (delivery) => {
      const { sendManager } = await import("./send-manager.ts");
      return sendManager({ ...delivery, identity });
    },
    enqueue: (key) => queue.add(key),
    events,
    clock,
    logger,
  });
  const demoted = createDemotedPrimary({ stores, client: statusClient });
  const executor: ExecutorOptions = {
    api,
    stores,
    events,
    clock,
    random: options.random,
    context: facts.operator.context,
    failpoint: options.failpoint,
    takeRolloutSlot: (slot, seenAtMs) => {
      rolloutSlots.take(slot, seenAtMs);
      return () => rolloutSlots.giveBack(slot);
    },
    managers: uploads,
    demoted,
  };
  const leaseSilence = new LeaseSilence({ leases: stores.leases, clock, enqueue: (key) => queue.add(key) });
  const observer = createClusterObserver({
    api,
    stores,
    statusClient,
    facts: facts.operator,
    rolloutSlot: () => rolloutSlots.latest(),
    managerUploads: () => uploads.states,
    podMonitors: createKindProbe(api, resources.podMonitors, clock),
    leaseSilence,
  });
  const guard = createAdmissionGuard(facts.operator.context);
  whenClusterGone(stores.clusters, guard.forget);
  const queue = createWorkQueue({ name: "cluster", clock, metrics: metrics.forQueue("cluster") });
  const plugins = createPluginDirectory({
    api,
    source: api,
    stores,
    events: sink("cloudnative-pg-plugin"),
    clock,
    random: options.random,
    logger,
    operatorNamespace,
    socketFolder: settings.pluginSocketDir,
    enqueue: (key) => queue.add(key),
  });
  const controller = createController({
    name: "cluster",
    queue,
    reconcile: createClusterReconciler({
      ...executor,
      observer,
      demoted,
      guard,
      borrowPlugins: async (cluster, signal, passLogger) => {
        if (!concernsPlugins(cluster)) return withoutPlugins();
        const { borrowPlugins } = await import("./plugins/cluster-plugins.ts");
        return borrowPlugins(plugins, cluster, signal, passLogger);
      },
    }),
    logger,
    clock,
    concurrency: flags.maxConcurrentReconciles,
    metrics: metrics.forController("cluster", flags.maxConcurrentReconciles),
  });
  let cachesReady = false;
  for (const part of parts) groups.add("caches", part);
  const webhook = await createWebhook(
    options,
    settings,
    signal,
    facts,
    () => (cachesReady ? null : "caches are not filled yet"),
    metrics,
    reviewByPlugins({ directory: plugins, logger }),
  );
  groups.add("servers", webhook.server);
  const scrape = await createMetricsServer(options, settings, metrics);
  groups.add("servers", scrape.server);
  groups.add(
    "others",
    markReady(() => (cachesReady = true)),
  );
  groups.add("others", webhook.upkeep);
  if (scrape.upkeep) groups.add("others", scrape.upkeep);
  groups.add("leader", {
    name: "cluster watches",
    async run(stop) {
      const unsubscribe = subscribeWatches({
        stores,
        drainTaints: settings.drainTaints,
        sources: { namespace: operatorNamespace, names: sourceNames },
        enqueue: (key) => queue.add(key),
      });
      for (const cluster of stores.clusters.list()) {
        queue.add(`${cluster.metadata.namespace}/${cluster.metadata.name}`);
      }
      await untilAborted(stop);
      unsubscribe();
    },
  });
  groups.add("leader", { name: "silent leases", run: (stop) => leaseSilence.run(stop) });
  const sweep = { ...executor, logger, watchNamespaces: settings.watchNamespaces };
  groups.add(
    "leader",
    createSelectedPods({ source: api, clusters: stores.clusters, clock, logger, enqueue: (key) => queue.add(key) }),
  );
  groups.add("leader", createOrphanSweep({ ...sweep, enqueue: (key) => queue.add(key) }));
  groups.add("leader", plugins);
  groups.add("leader", controller);
  groups.add("leader", {
    name: "manager uploads",
    async run(stop) {
      await untilAborted(stop);
      await uploads.close();
    },
  });
  const backupPrograms = createBackupPrograms({
    api,
    stores,
    events: backupEvents,
    clock,
    random: options.random,
    logger,
    metrics,
    observer,
    exec: options.exec,
    hooks: async (stage, objects, stop) => {
      const { runBackupHooks } = await import("./plugins/backup-hooks.ts");
      return runBackupHooks(plugins, stage, objects, stop);
    },
    volumeSnapshots: facts.volumeSnapshots,
    timeZone: () => Intl.DateTimeFormat().resolvedOptions().timeZone,
  });
  for (const program of backupPrograms) groups.add("leader", program);
  const roles = { api, stores, clock, logger, metrics, context: facts.operator.context };
  for (const program of createDatabaseRolePrograms(roles)) groups.add("leader", program);
  groups.add(
    "others",
    createLeadership(options, settings, () => groups.startLeaderWork(), metrics),
  );
  try {
    await groups.run(signal);
  } finally {
    const sinks = [events, ...Object.values(backupEvents)];
    await Promise.race([Promise.all(sinks.map((it) => it.flush())), clock.sleep(1_000)]);
    await statusClient.close();
  }
}

function markReady(mark: () => void): Runnable {
  return {
    name: "readiness",
    async run(stop) {
      mark();
      await untilAborted(stop);
    },
  };
}
