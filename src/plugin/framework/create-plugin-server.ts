// Starts a plugin: identity and health, the services of the author, and whatever the enrichers add, on a unix socket or
// TCP with mutual TLS.
import { join } from "node:path";
import { pluginSocketFolder } from "../../api/plugin-service.ts";
import type { Logger } from "../../ports/logger.ts";
import { type Handler, type ListenOptions, type RpcServer, startRpcServer } from "../../rpc/server.ts";
import { createLogger } from "../../runtime/logger.ts";
import { buildHandlers } from "./handlers.ts";
import type { PluginIdentityOptions } from "./identity.ts";
import { type Interceptor, intercept, logFailures } from "./interceptors.ts";
import type { PluginServices } from "./services.ts";
import { statusOf } from "./status-error.ts";

/** A unix socket in the folder that plugins share, named as the plugin. */
export interface PluginSocket {
  kind: "socket";
  /** @default /plugins */
  folder?: string;
}

/** TCP with TLS 1.3 and a verified client certificate. The files are read again when they change. */
export interface PluginTls {
  kind: "tls";
  /** Host and port; `:9090` means every address, port 0 a free one. */
  address: string;
  certificateFile: string;
  keyFile: string;
  /** PEM that the client's certificate is checked with: its authority's, or its own. */
  clientRootsFile: string;
  /** @default 2000 */
  reloadMs?: number;
}

export interface PluginServerOptions {
  identity: PluginIdentityOptions;
  /** What the plugin does; `{}` is a plugin that only says who it is. */
  services: PluginServices;
  listen: PluginSocket | PluginTls;
  /** Each adds handlers of further gRPC services. */
  enrichers?: readonly (() => readonly Handler[])[];
  /** Around every call; the first is the outermost. The framework's own log comes before them. */
  interceptors?: readonly Interceptor[];
  /** @default JSON lines on stderr */
  logger?: Logger;
}

export interface PluginServer {
  /** Host and port, or the path of the socket. */
  readonly address: string;
  /** TLS: reads the certificate files now. */
  reload(): Promise<void>;
  /** Refuses new calls and waits for running ones. @default graceMs 30000 */
  stop(options?: { graceMs?: number }): Promise<void>;
}

/** Starts the plugin's server; resolves when it listens. */
export async function createPluginServer(options: PluginServerOptions): Promise<PluginServer> {
  const logger = options.logger ?? createLogger({ level: "info" });
  const own = buildHandlers(options.identity, options.services);
  const further = (options.enrichers ?? []).flatMap((enrich) => enrich());
  const taken = further.find(({ path }) => own.some((handler) => handler.path === path));
  if (taken) throw new TypeError(`enricher: ${taken.path} is served by the framework already; give it as a service`);
  const interceptors = [logFailures(logger), ...(options.interceptors ?? [])];
  const server = await startRpcServer({
    handlers: [...own, ...further].map((handler) => intercept(handler, interceptors)),
    listen: compileListen(options, logger),
    toStatus: statusOf,
  });
  logger.info("Plugin listens", { plugin: options.identity.name, address: server.address });
  return publicServer(server);
}

function compileListen({ identity, listen }: PluginServerOptions, logger: Logger): ListenOptions {
  if (listen.kind === "socket") {
    return { kind: "socket", path: join(listen.folder ?? pluginSocketFolder, identity.name) };
  }
  return { ...listen, logger };
}

function publicServer({ address, reload, stop }: RpcServer): PluginServer {
  return { address, reload, stop };
}
