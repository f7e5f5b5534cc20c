// The plugins that this operator can reach: Services of its own namespace, and sockets in a folder.

import { enabledPlugins } from "../../api/cluster-facts.ts";
import type { Secret, Service } from "../../api/generated/kubernetes.ts";
import { pluginService } from "../../api/plugin-service.ts";
import type { ListWatch } from "../../kube/kube-client.ts";
import type { Clock, Random } from "../../ports/clock.ts";
import type { EventSink } from "../../ports/event-sink.ts";
import type { KubeApi, Store } from "../../ports/kube-api.ts";
import type { Logger } from "../../ports/logger.ts";
import { PluginError, type PluginSession } from "../../ports/plugin.ts";
import { type DiscoveryProblem, discoverEndpoints, isPluginService } from "../../rpc/discovery.ts";
import type { GrpcPluginPool } from "../../rpc/pool.ts";
import type { Runnable } from "../../runtime/runnable.ts";
import { keyOf } from "../cluster-controller.ts";
import { whenClusterGone } from "../gone-clusters.ts";
import type { OperatorStores } from "../stores.ts";
import { untilAborted } from "../until-aborted.ts";
import { followEndpoints } from "./plugin-endpoints.ts";
import { holdService, letServiceGo, referTo } from "./plugin-finalizer.ts";

export interface PluginDirectoryOptions {
  api: KubeApi;
  /** Where changes of the pods behind a plugin's Service are watched. @default - they are not */
  source?: ListWatch;
  stores: Pick<OperatorStores, "services" | "secrets" | "clusters">;
  events: EventSink;
  clock: Clock;
  random: Random;
  logger: Logger;
  /** Plugins in other namespaces are passed over; empty = only sockets. */
  operatorNamespace: string;
  socketFolder: string;
  /** Called for each cluster whose plugin came, changed or went. */
  enqueue(key: string): void;
}

/** Finds plugins and lends connections to them. */
export interface PluginDirectory extends Runnable {
  /**
   * Connects to all of these plugins; give the session back in the end. Throws a PluginError.
   *
   * @default budgetMs 5000
   */
  load(names: readonly string[], options: { signal: AbortSignal; budgetMs?: number }): Promise<PluginSession>;
  /** Calls with the UID of each Cluster that is gone, for as long as the directory is in use. */
  onClusterGone(forget: (uid: string) => void): void;
}

/** A directory that is empty until it runs. */
export function createPluginDirectory(options: PluginDirectoryOptions): PluginDirectory {
  const { stores, logger, operatorNamespace } = options;
  /** The last problem told of each Service, so that an event comes once. */
  const told = new Map<string, string>();
  let pool: Promise<GrpcPluginPool> | undefined;
  /** Only the leader follows changes, tells of them and wakes clusters; others look at the time of a question. */
  let isRunning = false;

  /** The gRPC library stays out of memory until a plugin is asked for. */
  function openPool(): Promise<GrpcPluginPool> {
    pool ??= import("../../rpc/pool.ts").then(async ({ createPluginPool }) => {
      const made = createPluginPool(options);
      applyServices(made);
      await scan(made);
      return made;
    });
    return pool;
  }

  async function scan(target: GrpcPluginPool): Promise<void> {
    if (!options.socketFolder) return;
    await target.scanSockets(options.socketFolder).catch((error: unknown) => {
      logger.warning("Plugin sockets cannot be read", { folder: options.socketFolder, error });
    });
  }

  function applyServices(target: GrpcPluginPool): void {
    const services = operatorNamespace ? stores.services.list(operatorNamespace) : [];
    const secret = (name: string) => stores.secrets.get({ namespace: operatorNamespace, name });
    const { endpoints, problems } = discoverEndpoints({ services, secret });
    const changes = target.replaceEndpoints("services", endpoints);
    if (!isRunning) return;
    tell(problems);
    const names = new Set([...changes.added, ...changes.changed, ...changes.removed]);
    for (const service of services) {
      const name = service.metadata.labels?.[pluginService.label] ?? "";
      if (!changes.added.includes(name) && !changes.changed.includes(name)) continue;
      options.events.record(referTo(service), {
        type: "Normal",
        reason: "PluginRegistered",
        message: `Plugin ${name} is registered`,
      });
    }
    wake(names);
  }

  function tell(problems: readonly DiscoveryProblem[]): void {
    const current = new Set(problems.map(({ service }) => service.name));
    for (const name of told.keys()) if (!current.has(name)) told.delete(name);
    for (const problem of problems) {
      if (told.get(problem.service.name) === problem.message) continue;
      told.set(problem.service.name, problem.message);
      logger.warning("Plugin cannot be registered", { pluginName: problem.plugin, reason: problem.message });
      const service = stores.services.get(problem.service);
      if (!service) continue;
      const { reason, message } = problem;
      options.events.record(referTo(service), { type: "Warning", reason, message });
    }
  }

  function wake(names: ReadonlySet<string>): void {
    if (names.size === 0) return;
    for (const cluster of stores.clusters.list()) {
      if (enabledPlugins(cluster).some((name) => names.has(name))) options.enqueue(keyOf(cluster));
    }
  }

  async function onService(service: Service): Promise<void> {
    if (service.metadata.namespace !== operatorNamespace || !service.metadata.labels?.[pluginService.label]) return;
    const target = await openPool();
    applyServices(target);
    if (service.metadata.deletionTimestamp) await letServiceGo(options, service);
    else if (isPluginService(service)) await holdService(options, service);
  }

  /** Other pods serve it now: perhaps another version, which has other abilities. */
  async function onEndpoints(name: string): Promise<void> {
    const service = stores.services.get({ namespace: operatorNamespace, name });
    const plugin = service && isPluginService(service) ? service.metadata.labels?.[pluginService.label] : undefined;
    if (!plugin) return;
    if (pool) (await pool).refresh(plugin);
    logger.info("Other pods serve a plugin", { pluginName: plugin, service: name });
    wake(new Set([plugin]));
  }

  async function onSecret(secret: Secret): Promise<void> {
    if (secret.metadata.namespace !== operatorNamespace || !pool) return;
    applyServices(await pool);
  }

  return {
    name: "plugins",
    async load(names, { signal, budgetMs }) {
      if (!pool && !hasPlugins(stores.services, operatorNamespace) && !options.socketFolder) throw unknown(names);
      const target = await openPool();
      if (!isRunning) applyServices(target);
      // A socket may have come since; a folder is not worth a watch.
      if (names.some((name) => !target.names().includes(name))) await scan(target);
      return target.load(names, { signal, ...(budgetMs === undefined ? {} : { budgetMs }) });
    },
    onClusterGone: (forget) => whenClusterGone(stores.clusters, forget),
    async run(stop) {
      const fail = (error: unknown) => logger.error("A plugin's Service could not be handled", { error });
      isRunning = true;
      const endpoints =
        options.source && operatorNamespace
          ? followEndpoints({
              ...options,
              source: options.source,
              namespace: operatorNamespace,
              onChange: (name) => void onEndpoints(name).catch(fail),
            }).run(stop)
          : undefined;
      const stops = [
        stores.services.subscribe(({ object }) => void onService(object).catch(fail)),
        stores.secrets.subscribe(({ object }) => void onSecret(object).catch(fail)),
      ];
      const known = operatorNamespace ? stores.services.list(operatorNamespace) : [];
      for (const service of known) await onService(service).catch(fail);
      await untilAborted(stop);
      for (const each of stops) each();
      isRunning = false;
      await endpoints;
      await (await pool)?.close();
    },
  };
}

function hasPlugins(services: Store<Service>, namespace: string): boolean {
  return namespace !== "" && services.list(namespace).some((it) => it.metadata.labels?.[pluginService.label]);
}

function unknown(names: readonly string[]): PluginError {
  const [plugin = ""] = names;
  return new PluginError(`plugin ${plugin} is not known: install it, or correct spec.plugins`, {
    plugin,
    operation: "connect",
    kind: "unknownPlugin",
  });
}
