// Mode `operator`: one Deployment for all clusters. Every replica answers the operator's calls, which keep no state; only
// the leader follows the ObjectStores.
import { hostname } from "node:os";
import type { KubeClient } from "../../kube/kube-client.ts";
import { createLeaderElector } from "../../kube/leader-elector.ts";
import { resources } from "../../kube/resources.ts";
import { createStore } from "../../kube/store.ts";
import type { Clock, Random } from "../../ports/clock.ts";
import type { Files } from "../../ports/files.ts";
import type { Logger } from "../../ports/logger.ts";
import type { Metrics } from "../../runtime/metrics.ts";
import type { SentRequests } from "../../runtime/program-metrics.ts";
import type { Runnable } from "../../runtime/runnable.ts";
import { createRunnableGroups, type RunnableGroups } from "../../runtime/runnable-groups.ts";
import { createPluginServer, type PluginSocket, type PluginTls } from "../framework/create-plugin-server.ts";
import { accessLabel } from "./access-role.ts";
import { createLifecycleService, createReconcilerService } from "./cluster-hooks.ts";
import { createHealthServer } from "./health-server.ts";
import { pluginIdentity } from "./identity.ts";
import { createMetricsAccess } from "./metrics-access.ts";
import { createMetricsServer } from "./metrics-server.ts";
import { createCertificateUpkeep, ensureCertificates } from "./plugin-certificates.ts";
import { createStoreController } from "./store-controller.ts";

const leaderLease = "822e3f5c.cnpg.io";

export interface HooksOptions {
  api: KubeClient;
  clock: Clock;
  random: Random;
  logger: Logger;
  files: Files;
  listen: PluginSocket | PluginTls;
  sidecarImage: string;
  /** Namespace of the plugin; empty outside of a cluster. */
  namespace: string;
  leaderElect: boolean;
  /** Service whose annotations name the Secrets of the plugin's TLS; absent when somebody else makes them. */
  certificatesService?: string | undefined;
  /** Absent: no health server. */
  healthAddress?: { host?: string; port: number } | undefined;
  /** Absent: no metrics. */
  metrics?: HooksMetrics | undefined;
}

/** Where the metrics of the program are told, and to whom. */
export interface HooksMetrics {
  address: { host?: string; port: number };
  /** By TLS, and only to whom the API server allows it. */
  secure: boolean;
  /** What the client of the API server has sent so far. */
  requests: () => readonly SentRequests[];
}

/** Runs the plugin beside the operator until the signal aborts. */
export async function runHooks(options: HooksOptions, signal: AbortSignal): Promise<void> {
  const { api, clock, logger } = options;
  const labelled = { logger, clock, labelSelector: accessLabel };
  const objectStores = createStore(api, resources.objectStores, { logger, clock });
  const roles = createStore(api, resources.roles, labelled);
  const roleBindings = createStore(api, resources.roleBindings, labelled);
  const groups = createRunnableGroups({ logger, clock, stopTimeoutMs: 15_000 });
  let listening = false;
  if (options.healthAddress) {
    const readiness = () => (listening ? null : "the plugin does not listen yet");
    groups.add("servers", createHealthServer(options.healthAddress, readiness, clock));
  }
  for (const store of [objectStores, roles, roleBindings]) groups.add("caches", store);
  const upkeep = await prepareTls(options, signal);
  if (upkeep) groups.add("others", upkeep);
  const metrics = await addMetrics(options, groups);
  const deps = { api, objectStores, roles, roleBindings, sidecarImage: options.sidecarImage, logger };
  groups.add("others", {
    name: "plugin server",
    async run(stop) {
      const server = await createPluginServer({
        identity: { ...pluginIdentity, injectsInstanceSidecar: true },
        // The order shows in the status of every Cluster, and another release of the plugin has this one.
        services: { reconciler: createReconcilerService(deps), lifecycle: createLifecycleService(deps) },
        listen: options.listen,
        logger,
      });
      listening = true;
      await untilAborted(stop);
      listening = false;
      await server.stop({ graceMs: 5_000 });
    },
  });
  for (const part of createStoreController({ ...deps, clock, metrics })) groups.add("leader", part);
  const tell = metrics?.forLeadership(leaderLease);
  const onStarted = () => {
    tell?.(true);
    groups.startLeaderWork();
  };
  groups.add("others", leadership(options, onStarted));
  await groups.run(signal);
}

/** The library behind metrics takes megabytes, which only those pay for who asked for them. */
async function addMetrics(options: HooksOptions, groups: RunnableGroups): Promise<Metrics | undefined> {
  const { api, clock, logger } = options;
  if (!options.metrics) return undefined;
  const { address, secure, requests } = options.metrics;
  const { createMetrics } = await import("../../runtime/metrics.ts");
  const metrics = createMetrics({ processMetrics: true });
  metrics.forRequests(requests);
  const access = secure ? { access: createMetricsAccess(api, clock) } : {};
  groups.add("servers", await createMetricsServer({ address, metrics: async () => metrics, clock, logger, ...access }));
  return metrics;
}

async function prepareTls(options: HooksOptions, signal: AbortSignal): Promise<Runnable | undefined> {
  const { listen, certificatesService: service, namespace, api, files, clock, logger } = options;
  if (listen.kind !== "tls" || !service) return undefined;
  if (!namespace) throw new Error("certificates are made in the plugin's own namespace: set POD_NAMESPACE");
  const deps = { api, files, clock, logger, namespace, service, tls: listen };
  await ensureCertificates(deps, signal);
  return createCertificateUpkeep(deps);
}

function leadership(options: HooksOptions, onStarted: () => void): Runnable {
  const { api, clock, random, logger, namespace } = options;
  if (!options.leaderElect || !namespace) {
    return {
      name: "leadership without election",
      async run(stop) {
        onStarted();
        await untilAborted(stop);
      },
    };
  }
  const identity = `${hostname()}_${Buffer.from(random.bytes(8)).toString("hex")}`;
  return createLeaderElector({ api, namespace, name: leaderLease, identity, clock, random, logger, onStarted });
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
