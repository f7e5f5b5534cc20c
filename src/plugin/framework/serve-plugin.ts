import { createLogger } from "../../runtime/logger.ts";
import { runUntilSignal } from "../../runtime/shutdown.ts";
import { createPluginServer, type PluginServerOptions } from "./create-plugin-server.ts";
import { parseServeFlags } from "./serve-flags.ts";

export interface ServePluginOptions extends Omit<PluginServerOptions, "listen"> {
  /** Where to listen. @default from the command line of the process */
  listen?: PluginServerOptions["listen"];
  /** Time that running calls get after SIGTERM, milliseconds. @default 30000 */
  graceMs?: number;
}

/** The whole life of a plugin program: serves until SIGTERM, lets running calls end, and answers with the exit code. */
export function servePlugin(options: ServePluginOptions): Promise<number> {
  const logger = options.logger ?? createLogger({ level: "info" });
  return runUntilSignal(
    async (signal) => {
      const listen = options.listen ?? parseServeFlags(process.argv.slice(2));
      const server = await createPluginServer({ ...options, logger, listen });
      await new Promise<void>((resolve) => {
        if (signal.aborted) resolve();
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
      await server.stop({ graceMs: options.graceMs ?? 30_000 });
    },
    { logger },
  );
}
