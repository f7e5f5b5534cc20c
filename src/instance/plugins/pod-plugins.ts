// The plugins that serve this pod over unix sockets. The gRPC library (17 MB) is loaded when the first of them is called.
import { pluginSocketFolder } from "../../api/plugin-service.ts";
import type { Clock, Random } from "../../ports/clock.ts";
import type { Files } from "../../ports/files.ts";
import type { Logger } from "../../ports/logger.ts";
import type { PluginSession } from "../../ports/plugin.ts";
import type { GrpcPluginPool } from "../../rpc/pool.ts";

export interface PodPluginsDeps {
  files: Files;
  clock: Clock;
  random: Random;
  logger: Logger;
  /** Environment of the process: `PLUGIN_SOCKET_DIR` names the folder of the sockets. */
  environment: Readonly<Record<string, string | undefined>>;
}

export interface PluginUse {
  /** Longest wait for the connections. @default 5000 */
  budgetMs?: number;
  signal?: AbortSignal;
}

/** Plugins of the pod, by the names of their sockets. */
export interface PodPlugins {
  /** Names with a socket right now, sorted. */
  names(): Promise<string[]>;
  /** Runs work with the named plugins, all or none, and gives them back whatever happens. */
  use<T>(names: readonly string[], work: (session: PluginSession) => Promise<T>, options?: PluginUse): Promise<T>;
  close(): Promise<void>;
}

/** Connects to plugins when they are needed; the sockets are looked for anew each time. */
export function createPodPlugins(deps: PodPluginsDeps): PodPlugins {
  const folder = deps.environment["PLUGIN_SOCKET_DIR"] || pluginSocketFolder;
  let opening: Promise<GrpcPluginPool> | undefined;
  const open = () => {
    opening ??= import("../../rpc/pool.ts").then(({ createPluginPool }) => createPluginPool(deps));
    return opening;
  };
  return {
    async names() {
      // A folder that is not there is one without plugins.
      const names = (await deps.files.exists(folder)) ? await deps.files.list(folder) : [];
      return names.sort();
    },
    async use(names, work, options = {}) {
      const pool = await open();
      await pool.scanSockets(folder);
      const { budgetMs = 5_000, signal } = options;
      const session = await pool.load(names, { budgetMs, ...(signal ? { signal } : {}) });
      try {
        return await work(session);
      } finally {
        session.release();
      }
    },
    async close() {
      if (opening) await (await opening).close({ graceMs: 2_000 });
    },
  };
}
