import { createServer } from "node:http";
import type { Clock } from "../../ports/clock.ts";
import type { Runnable } from "../../runtime/runnable.ts";
import { createServerRunnable } from "../../runtime/server-runnable.ts";

/** The server behind `/healthz`, which says that the process lives, and `/readyz`; `readiness` is null when ready, else why not. */
export function createHealthServer(
  address: { host?: string; port: number },
  readiness: () => string | null,
  clock: Clock,
): Runnable {
  const server = createServer((request, response) => {
    const path = (request.url ?? "").split("?")[0];
    if (path !== "/healthz" && path !== "/readyz") {
      response.writeHead(404).end();
      return;
    }
    const reason = path === "/readyz" ? readiness() : null;
    response.writeHead(reason === null ? 200 : 503, { "content-type": "text/plain" }).end(reason ?? "ok");
  });
  return createServerRunnable({ name: "health server", server, clock, ...address });
}
