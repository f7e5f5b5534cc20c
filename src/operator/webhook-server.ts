import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import type { WebhookMetrics } from "../runtime/program-metrics.ts";
import type { AdmissionExtension, AdmissionHandlers } from "./admission-review.ts";
import { answerExtendedReview, answerReview } from "./admission-review.ts";

export interface WebhookServerOptions {
  certificate: { certificate: string; privateKey: string };
  handlers: AdmissionHandlers;
  /** Has its say after the handlers. @default - nobody's */
  extension?: AdmissionExtension;
  /** Why the program is not ready to serve; `null` = it is. */
  readiness(): string | null;
  logger: Logger;
  clock: Clock;
  /** @default - nothing is counted */
  metrics?: WebhookMetrics;
}

/** The HTTPS server behind the admission webhooks and the probes of the operator's pod. */
export interface WebhookServer {
  server: Server;
  /** Serves another certificate from the next connection on. */
  useCertificate(pair: { certificate: string; privateKey: string }): void;
}

/** No admission review comes near this size: etcd refuses objects above 1.5 MiB. */
const maxBodyBytes = 8 * 1024 * 1024;

export function createWebhookServer(options: WebhookServerOptions): WebhookServer {
  const { certificate, privateKey } = options.certificate;
  const server = createServer({ cert: certificate, key: privateKey, minVersion: "TLSv1.2" }, (request, response) => {
    handle(options, request, response).catch((error: unknown) => {
      options.logger.error("Webhook request failed", { path: request.url, error });
      if (!response.headersSent) response.writeHead(500);
      response.end();
    });
  });
  return {
    server,
    useCertificate: (pair) =>
      server.setSecureContext({ cert: pair.certificate, key: pair.privateKey, minVersion: "TLSv1.2" }),
  };
}

async function handle(
  options: WebhookServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const path = (request.url ?? "").split("?")[0] ?? "";
  if (path === "/readyz") {
    const reason = options.readiness();
    response.writeHead(reason === null ? 200 : 503, { "content-type": "text/plain" });
    response.end(reason ?? "OK");
    return;
  }
  const handler = options.handlers.get(path);
  if (!handler || request.method !== "POST") {
    response.writeHead(404);
    response.end();
    return;
  }
  const started = options.clock.monotonicMs();
  const ended = options.metrics?.began(path);
  // Whoever goes away before the answer is counted as one that failed.
  response.once("close", () => {
    ended?.(response.writableFinished ? response.statusCode : 500, options.clock.monotonicMs() - started);
  });
  const text = await readBody(request);
  const { extension } = options;
  const answer = extension ? await answerExtendedReview(path, text, handler, extension) : answerReview(text, handler);
  response.writeHead(answer.status, { "content-type": "application/json" });
  response.end(answer.body);
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += (chunk as Buffer).length;
    if (size > maxBodyBytes) throw new Error(`request body exceeds ${maxBodyBytes} bytes`);
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString("utf8");
}
