import { readFile } from "node:fs/promises";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { hostname } from "node:os";
import { join } from "node:path";
import { ports } from "../api/constants.ts";
import { createEventSink } from "../kube/event-sink.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { createLeaderElector } from "../kube/leader-elector.ts";
import { resources } from "../kube/resources.ts";
import type { OperatorFacts, RolloutSlot } from "../plan/cluster/observed.ts";
import type { Clock, Random } from "../ports/clock.ts";
import { isKubeError } from "../ports/kube-api.ts";
import type { Logger } from "../ports/logger.ts";
import { createController } from "../runtime/controller.ts";
import { createMetrics } from "../runtime/metrics.ts";
import type { Runnable } from "../runtime/runnable.ts";
import { createRunnableGroups } from "../runtime/runnable-groups.ts";
import { createServerRunnable } from "../runtime/server-runnable.ts";
import { createWorkQueue } from "../runtime/work-queue.ts";
import { createAdmissionGuard } from "./admission-guard.ts";
import { createAdmissionHandlers } from "./admission-handlers.ts";
import { createClusterReconciler } from "./cluster-controller.ts";
import type { ExecutorOptions } from "./execute.ts";
import type { Failpoint } from "./failpoint.ts";
import { readManagerFiles } from "./manager-files.ts";
import { createClusterObserver } from "./observe.ts";
import { createTransientCertificate, ensureOperatorCertificates } from "./operator-certificates.ts";
import { createOperatorIdentity } from "./operator-identity.ts";
import { compileSettings, type OperatorSettings, type SettingSource } from "./settings.ts";
import { createStatusClient } from "./status-client.ts";
import { createOperatorStores } from "./stores.ts";
import { subscribeWatches } from "./watches.ts";
import { createWebhookServer } from "./webhook-server.ts";

/** What the command line says (reference: cluster controller §9.1). */
export interface OperatorFlags {
  metricsAddress: { host?: string; port: number };
  leaderElect: boolean;
  leaderLeaseDurationMs: number;
  leaderRenewDeadlineMs: number;
  configMapName: string;
  secretName: string;
  webhookPort: number;
  maxConcurrentReconciles: number;
  logFieldLevel?: string;
  logFieldTimestamp?: string;
}

export interface OperatorOptions {
  flags: OperatorFlags;
  api: KubeClient;
  clock: Clock;
  random: Random;
  logger: Logger;
  env: SettingSource;
  failpoint: Failpoint;
  /** Folders of the operator's image. @default "/runtime" and "/operator" */
  runtimeFolder?: string;
  operatorFolder?: string;
}

const leaderLease = "db9c8771.cnpg.io";
const certificateCheckMs = 3_600_000;
/** Files of certificates that somebody else maintains are looked at this often. */
const certificateFileCheckMs = 10_000;

/** Runs the operator until the signal aborts. */
export async function runOperator(options: OperatorOptions, signal: AbortSignal): Promise<void> {
  const { api, clock, logger, flags } = options;
  const settings = await loadSettings(options, signal);
  const facts = await gatherFacts(options, settings, signal);
  const metrics = createMetrics({ processMetrics: true });
  const groups = createRunnableGroups({ logger, clock, stopTimeoutMs: 8_000 });
  const events = createEventSink(api, { component: "cloudnative-pg", instance: hostname(), clock, logger });
  const identity = facts.identity;
  const statusClient = createStatusClient({ identity });
  const { stores, parts } = createOperatorStores({
    source: api,
    clock,
    logger,
    watchNamespaces: settings.watchNamespaces,
    operatorNamespace: settings.context.operatorNamespace,
    sourceNames: [
      settings.context.pullSecretName,
      settings.context.monitoringQueriesConfigMap,
      settings.context.monitoringQueriesSecret,
    ].filter((it) => it !== ""),
  });
  let rolloutSlot: RolloutSlot | undefined;
  const executor: ExecutorOptions = {
    api,
    stores,
    events,
    clock,
    random: options.random,
    context: facts.operator.context,
    failpoint: options.failpoint,
    takeRolloutSlot: (cluster, instance) => {
      rolloutSlot = { cluster, instance, atMs: clock.now() };
    },
  };
  const observer = createClusterObserver({
    api,
    stores,
    statusClient,
    facts: facts.operator,
    rolloutSlot: () => rolloutSlot,
    podMonitors: facts.podMonitors,
  });
  const guard = createAdmissionGuard(facts.operator.context);
  const queue = createWorkQueue({ name: "cluster", clock, metrics: metrics.forQueue("cluster") });
  const controller = createController({
    name: "cluster",
    queue,
    reconcile: createClusterReconciler({ ...executor, observer, guard }),
    logger,
    clock,
    concurrency: flags.maxConcurrentReconciles,
    metrics: metrics.forController("cluster", flags.maxConcurrentReconciles),
  });
  let cachesReady = false;
  for (const part of parts) groups.add("caches", part);
  const webhook = await createWebhook(options, settings, signal, () =>
    cachesReady ? null : "caches are not filled yet",
  );
  groups.add("servers", webhook.server);
  groups.add("servers", await createMetricsServer(options, settings, metrics.contentType, () => metrics.render()));
  groups.add(
    "others",
    markReady(() => (cachesReady = true)),
  );
  groups.add("others", webhook.upkeep);
  groups.add("leader", {
    name: "cluster watches",
    async run(stop) {
      const unsubscribe = subscribeWatches({
        stores,
        drainTaints: settings.drainTaints,
        enqueue: (key) => queue.add(key),
      });
      for (const cluster of stores.clusters.list()) {
        queue.add(`${cluster.metadata.namespace}/${cluster.metadata.name}`);
      }
      await untilAborted(stop);
      unsubscribe();
    },
  });
  groups.add("leader", controller);
  groups.add(
    "others",
    createLeadership(options, settings, () => groups.startLeaderWork()),
  );
  try {
    await groups.run(signal);
  } finally {
    await Promise.race([events.flush(), clock.sleep(1_000)]);
    await statusClient.close();
  }
}

async function loadSettings({ api, env, flags }: OperatorOptions, signal: AbortSignal): Promise<OperatorSettings> {
  const namespace = env["OPERATOR_NAMESPACE"] ?? "";
  const read = async <T>(operation: Promise<T>): Promise<T | undefined> => {
    try {
      return await operation;
    } catch (error) {
      if (isKubeError(error, "notFound")) return undefined;
      throw error;
    }
  };
  const key = (name: string) => ({ namespace, name });
  const configMap =
    namespace && flags.configMapName
      ? await read(api.get(resources.configMaps, key(flags.configMapName), { signal }))
      : undefined;
  const secret =
    namespace && flags.secretName
      ? await read(api.get(resources.secrets, key(flags.secretName), { signal }))
      : undefined;
  const decoded = Object.fromEntries(
    Object.entries(secret?.data ?? {}).map(([name, value]) => [name, Buffer.from(value, "base64").toString("utf8")]),
  );
  const settings = compileSettings([env, configMap?.data ?? {}, decoded]);
  if (settings.webhookNamespaceSuffix && !settings.context.operatorNamespace) {
    throw new Error("ENABLE_WEBHOOK_NAMESPACE_SUFFIX needs OPERATOR_NAMESPACE: set it by the downward API");
  }
  return settings;
}

async function gatherFacts(options: OperatorOptions, settings: OperatorSettings, signal: AbortSignal) {
  const { api, clock, flags } = options;
  const [podMonitors, securityContextConstraints, managers, identity] = await Promise.all([
    api.serves(resources.podMonitors, { signal }),
    api.serves(
      {
        group: "security.openshift.io",
        version: "v1",
        kind: "SecurityContextConstraints",
        plural: "securitycontextconstraints",
        namespaced: false,
      },
      { signal },
    ),
    readManagerFiles({
      runtimeFolder: options.runtimeFolder ?? "/runtime",
      operatorFolder: options.operatorFolder ?? "/operator",
      program: process.argv[1] ?? process.execPath,
      arch: process.arch,
    }),
    createOperatorIdentity(hostname(), clock.now()),
  ]);
  const operator: OperatorFacts = {
    context: {
      ...settings.context,
      securityContextConstraints,
      ...(flags.logFieldLevel ? { logFieldLevel: flags.logFieldLevel } : {}),
      ...(flags.logFieldTimestamp ? { logFieldTimestamp: flags.logFieldTimestamp } : {}),
    },
    commitHash: "none",
    managerHash: managers.hash,
    architectures: managers.architectures,
    certificateFingerprint: identity.fingerprint,
    onlineUpdateEnabled: settings.inPlaceManagerUpdates,
    drainTaints: settings.drainTaints,
    instancesRolloutDelayMs: settings.instancesRolloutDelayMs,
    clustersRolloutDelayMs: settings.clustersRolloutDelayMs,
  };
  return { operator, identity, podMonitors };
}

async function createWebhook(
  options: OperatorOptions,
  settings: OperatorSettings,
  signal: AbortSignal,
  readiness: () => string | null,
): Promise<{ server: Runnable; upkeep: Runnable }> {
  const { api, clock, logger, flags } = options;
  const folder = settings.webhookCertDir;
  const certificates = { api, clock, logger, settings };
  const load = async (stop: AbortSignal) => {
    if (folder) {
      const [certificate, privateKey] = await Promise.all([
        readFile(join(folder, "apiserver.crt"), "utf8"),
        readFile(join(folder, "apiserver.key"), "utf8"),
      ]);
      return { certificate, privateKey };
    }
    if (!settings.context.operatorNamespace) return createTransientCertificate(certificates);
    return ensureOperatorCertificates(certificates, stop);
  };
  const handlers = createAdmissionHandlers(settings.context);
  let current = await load(signal);
  const webhook = createWebhookServer({ certificate: current, handlers, readiness, logger });
  const upkeep: Runnable = {
    name: "webhook certificate",
    async run(stop) {
      while (!stop.aborted) {
        await clock.sleep(folder ? certificateFileCheckMs : certificateCheckMs, stop).catch(() => undefined);
        if (stop.aborted) return;
        try {
          const next = await load(stop);
          if (next.certificate !== current.certificate) webhook.useCertificate(next);
          current = next;
        } catch (error) {
          logger.error("Certificate of the webhooks could not be maintained", { error });
        }
      }
    },
  };
  const port = flags.webhookPort || ports.operatorWebhook;
  return { server: createServerRunnable({ name: "webhook server", server: webhook.server, port, clock }), upkeep };
}

async function createMetricsServer(
  { clock, flags, logger }: OperatorOptions,
  settings: OperatorSettings,
  contentType: string,
  render: () => Promise<string>,
): Promise<Runnable> {
  const handle: RequestListener = (request, response) => {
    if ((request.url ?? "").split("?")[0] !== "/metrics") {
      response.writeHead(404).end();
      return;
    }
    render().then(
      (text) => response.writeHead(200, { "content-type": contentType }).end(text),
      (error: unknown) => {
        logger.error("Metrics could not be collected", { error });
        response.writeHead(500).end();
      },
    );
  };
  const folder = settings.metricsCertDir;
  const server = folder
    ? createHttpsServer(
        { cert: await readFile(join(folder, "tls.crt")), key: await readFile(join(folder, "tls.key")) },
        handle,
      )
    : createHttpServer(handle);
  const { host, port } = flags.metricsAddress;
  return createServerRunnable({ name: "metrics server", server, port, clock, ...(host ? { host } : {}) });
}

function createLeadership(options: OperatorOptions, settings: OperatorSettings, onStarted: () => void): Runnable {
  const { api, clock, logger, flags, random } = options;
  const namespace = settings.context.operatorNamespace;
  if (!flags.leaderElect || !namespace) {
    return {
      name: "leadership without election",
      async run(stop) {
        onStarted();
        await untilAborted(stop);
      },
    };
  }
  const identity = `${hostname()}_${Buffer.from(random.bytes(8)).toString("hex")}`;
  return createLeaderElector({
    api,
    namespace,
    name: leaderLease,
    identity,
    clock,
    random,
    logger,
    leaseDurationMs: flags.leaderLeaseDurationMs,
    renewDeadlineMs: flags.leaderRenewDeadlineMs,
    onStarted,
  });
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

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
