import type { Server } from "node:net";
import type { Clock } from "../ports/clock.ts";
import type { Runnable } from "./runnable.ts";

export interface ServerRunnableOptions {
  name: string;
  /** An HTTP, HTTPS or plain server that does not listen yet. */
  server: Server & { closeIdleConnections?(): void; closeAllConnections?(): void };
  port: number;
  /** @default all addresses */
  host?: string;
  clock: Clock;
  /** Requests under way get this long to end when stopping. @default 5000 */
  drainMs?: number;
}

const pollMs = 50;

/** Runs a server as a part of a program; ready once it listens, failed when its listener fails. */
export function createServerRunnable(options: ServerRunnableOptions): Runnable {
  const { server } = options;
  const listening = new Promise<void>((resolve, reject) => {
    server.once("listening", resolve);
    server.once("error", reject);
  });
  // A failure is reported by run(); nobody may be waiting for readiness.
  listening.catch(() => undefined);
  return {
    name: options.name,
    ready: () => listening,
    async run(signal) {
      const failed = new Promise<never>((_, reject) => server.once("error", reject));
      server.listen({ port: options.port, ...(options.host === undefined ? {} : { host: options.host }) });
      const stopped = new Promise<void>((resolve) => {
        if (signal.aborted) resolve();
        else signal.addEventListener("abort", () => resolve(), { once: true });
      });
      await Promise.race([failed, stopped]);
      await close(options);
    },
  };
}

async function close({ server, clock, drainMs }: ServerRunnableOptions): Promise<void> {
  let open = true;
  const closed = new Promise<void>((resolve) => server.close(() => resolve())).then(() => {
    open = false;
  });
  const deadline = clock.monotonicMs() + (drainMs ?? 5_000);
  while (open && clock.monotonicMs() < deadline) {
    // Connections that clients keep open become idle only once their last answer is through.
    server.closeIdleConnections?.();
    await Promise.race([closed, clock.sleep(pollMs)]);
  }
  server.closeAllConnections?.();
}
