import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  createPluginServer,
  type PluginServer,
  type PluginServerOptions,
  type PluginTls,
} from "../../../src/plugin/framework/create-plugin-server.ts";
import type { Plugin } from "../../../src/ports/plugin.ts";
import type { PluginEndpoint, TlsEndpoint } from "../../../src/rpc/endpoint.ts";
import { createPluginPool, type GrpcPluginPool } from "../../../src/rpc/pool.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { captureLogs, type LogCapture } from "../../support/log-capture.ts";
import { type Pair, selfSigned } from "./certificates.ts";

export const pluginName = "lab.example.com";
export const serverName = "lab-service";

export type Transport = "socket" | "tls";

/** A folder, two certificates, and everything that must be ended after the test. */
export interface Lab {
  folder: string;
  logs: LogCapture;
  server: Pair;
  client: Pair;
  /** Writes the certificate files that a server reads. */
  writeFiles(pairs?: { server?: Pair; client?: Pair }): Promise<Omit<PluginTls, "kind" | "address">>;
  start(
    transport: Transport,
    options: Omit<PluginServerOptions, "listen" | "logger">,
  ): Promise<{ server: PluginServer; endpoint: PluginEndpoint }>;
  tlsEndpoint(address: string, changes?: Partial<TlsEndpoint>): TlsEndpoint;
  pool(...endpoints: PluginEndpoint[]): GrpcPluginPool;
  /** Loads the lab's plugin; its loan ends with the lab. */
  load(endpoint: PluginEndpoint): Promise<Plugin>;
  end(): Promise<void>;
}

export async function createLab(): Promise<Lab> {
  const folder = await mkdtemp(join(tmpdir(), "rpc-lab-"));
  const [server, client] = await Promise.all([selfSigned(serverName), selfSigned("operator")]);
  const logs = captureLogs();
  const endings: (() => Promise<unknown>)[] = [];
  const file = (name: string) => join(folder, name);
  const lab: Lab = {
    folder,
    logs,
    server,
    client,
    async writeFiles(pairs = {}) {
      await writeFile(file("server.crt"), (pairs.server ?? server).cert);
      await writeFile(file("server.key"), (pairs.server ?? server).key);
      await writeFile(file("client.crt"), (pairs.client ?? client).cert);
      return {
        certificateFile: file("server.crt"),
        keyFile: file("server.key"),
        clientRootsFile: file("client.crt"),
      };
    },
    async start(transport, options) {
      const sockets = file("plugins");
      const listen =
        transport === "socket"
          ? ({ kind: "socket", folder: sockets } as const)
          : ({ kind: "tls", address: "127.0.0.1:0", ...(await lab.writeFiles()) } as const);
      const started = await createPluginServer({ ...options, listen, logger: logs.logger });
      endings.push(() => started.stop({ graceMs: 200 }));
      const { name } = options.identity;
      const endpoint: PluginEndpoint =
        transport === "socket"
          ? { kind: "socket", name, path: started.address }
          : lab.tlsEndpoint(started.address, { name });
      return { server: started, endpoint };
    },
    tlsEndpoint: (address, changes = {}) => ({
      kind: "tls",
      name: pluginName,
      address,
      serverName,
      serverRoots: server.cert,
      clientCertificate: client.cert,
      clientKey: client.key,
      ...changes,
    }),
    pool(...endpoints) {
      const pool = createPluginPool({ clock: systemClock, random: systemRandom, logger: logs.logger });
      pool.replaceEndpoints("services", endpoints);
      endings.push(() => pool.close({ graceMs: 100 }));
      return pool;
    },
    async load(endpoint) {
      const session = await lab.pool(endpoint).load([endpoint.name]);
      const plugin = session.get(endpoint.name);
      if (!plugin) throw new Error(`${endpoint.name} is not in its own session`);
      return plugin;
    },
    async end() {
      for (const end of endings.reverse()) await end();
      await rm(folder, { recursive: true, force: true });
    },
  };
  return lab;
}

/** A promise that the test settles. */
export function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
