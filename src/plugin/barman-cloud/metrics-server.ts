import { createServer as createHttpServer, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { createAuthority, createLeaf } from "../../pki/issue.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import type { Metrics } from "../../runtime/metrics.ts";
import type { Runnable } from "../../runtime/runnable.ts";
import { createServerRunnable } from "../../runtime/server-runnable.ts";
import type { MetricsAccess } from "./metrics-access.ts";

export interface MetricsServerOptions {
  address: { host?: string; port: number };
  /** Gives the metrics; asked at each scrape. */
  metrics: () => Promise<Pick<Metrics, "contentType" | "render">>;
  /** Serve by TLS, and only whom this lets in. @default - plain HTTP, for everybody */
  access?: MetricsAccess;
  clock: Clock;
  logger: Logger;
}

const certificateDays = 365;

/** The server behind `/metrics`. Its certificate lives as long as the process: who scrapes knows no authority for it. */
export async function createMetricsServer(options: MetricsServerOptions): Promise<Runnable> {
  const { address, access, clock } = options;
  const listen = { name: "metrics server", clock, ...address };
  const handle = createHandler(options);
  if (!access) return createServerRunnable({ ...listen, server: createHttpServer(handle) });
  const validity = { now: clock.now(), durationDays: certificateDays };
  const authority = await createAuthority({ commonName: "plugin-metrics", organizationalUnit: "" }, validity);
  const leaf = { commonName: "localhost", usage: "server" as const, dnsNames: ["localhost"] };
  const { certificate, privateKey } = await createLeaf(authority, leaf, validity);
  return createServerRunnable({ ...listen, server: createHttpsServer({ cert: certificate, key: privateKey }, handle) });
}

/** As {@link createMetricsServer}, but where somebody else has the port there are no metrics, and everything else goes on. */
export function createDispensableMetricsServer(options: MetricsServerOptions): Runnable {
  return {
    name: "metrics server",
    async run(stop) {
      const { host = "", port } = options.address;
      try {
        await (await createMetricsServer(options)).run(stop);
      } catch (error) {
        options.logger.warning("There are no metrics of this process", { address: `${host}:${port}`, error });
      }
    },
  };
}

function createHandler({ metrics, access, logger }: MetricsServerOptions): RequestListener {
  return (request, response) => {
    const path = (request.url ?? "").split("?")[0] ?? "";
    const method = request.method ?? "";
    answer().catch((error: unknown) => {
      logger.error("Metrics could not be told", { error });
      end(response, 500, "the metrics could not be told");
    });

    async function answer(): Promise<void> {
      const verdict = await access?.(request.headers.authorization, { method, path });
      if (verdict?.kind === "unknown") return end(response, 401, "Unauthorized");
      if (verdict?.kind === "forbidden") return end(response, 403, `Authorization denied for user ${verdict.user}`);
      if (path !== "/metrics") return end(response, 404, "404 page not found");
      const { contentType, render } = await metrics();
      response.writeHead(200, { "content-type": contentType }).end(await render());
    }
  };
}

function end(response: ServerResponse, code: number, text: string): void {
  response.writeHead(code, { "content-type": "text/plain; charset=utf-8" }).end(`${text}\n`);
}
