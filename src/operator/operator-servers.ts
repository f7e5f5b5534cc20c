import { readFile } from "node:fs/promises";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { join } from "node:path";
import { ports } from "../api/constants.ts";
import type { Runnable } from "../runtime/runnable.ts";
import { createServerRunnable } from "../runtime/server-runnable.ts";
import { createAdmissionHandlers } from "./admission-handlers.ts";
import type { AdmissionExtension } from "./admission-review.ts";
import { createTransientCertificate, ensureOperatorCertificates } from "./operator-certificates.ts";
import type { OperatorOptions } from "./operator-options.ts";
import type { OperatorSettings } from "./settings.ts";
import { createWebhookServer } from "./webhook-server.ts";

const certificateCheckMs = 3_600_000;
/** Files of certificates that somebody else maintains are looked at this often. */
const certificateFileCheckMs = 10_000;

/** The server behind the webhooks and probes, and what keeps its certificate valid. */
export async function createWebhook(
  options: OperatorOptions,
  settings: OperatorSettings,
  signal: AbortSignal,
  facts: { volumeSnapshots: boolean },
  readiness: () => string | null,
  extension?: AdmissionExtension,
): Promise<{ server: Runnable; upkeep: Runnable }> {
  const { api, clock, logger, flags } = options;
  const folder = settings.webhookCertDir;
  const certificates = { api, clock, logger, settings };
  const load = async (stop: AbortSignal) => {
    if (folder) {
      const [certificate, privateKey] = await Promise.all([
        readFile(join(folder, "apiserver.crt"), "utf8"),
        readFile(join(folder, "apiserver.key"), "utf8"),
      ]);
      return { certificate, privateKey };
    }
    if (!settings.context.operatorNamespace) return createTransientCertificate(certificates);
    return ensureOperatorCertificates(certificates, stop);
  };
  const handlers = createAdmissionHandlers(settings.context, facts);
  let current = await load(signal);
  const webhook = createWebhookServer({
    certificate: current,
    handlers,
    readiness,
    logger,
    ...(extension ? { extension } : {}),
  });
  const upkeep: Runnable = {
    name: "webhook certificate",
    async run(stop) {
      while (!stop.aborted) {
        await clock.sleep(folder ? certificateFileCheckMs : certificateCheckMs, stop).catch(() => undefined);
        if (stop.aborted) return;
        try {
          const next = await load(stop);
          if (next.certificate !== current.certificate) webhook.useCertificate(next);
          current = next;
        } catch (error) {
          logger.error("Certificate of the webhooks could not be maintained", { error });
        }
      }
    },
  };
  const port = flags.webhookPort || ports.operatorWebhook;
  return { server: createServerRunnable({ name: "webhook server", server: webhook.server, port, clock }), upkeep };
}

/** The server behind `/metrics`. */
export async function createMetricsServer(
  { clock, flags, logger }: OperatorOptions,
  settings: OperatorSettings,
  contentType: string,
  render: () => Promise<string>,
): Promise<Runnable> {
  const handle: RequestListener = (request, response) => {
    if ((request.url ?? "").split("?")[0] !== "/metrics") {
      response.writeHead(404).end();
      return;
    }
    render().then(
      (text) => response.writeHead(200, { "content-type": contentType }).end(text),
      (error: unknown) => {
        logger.error("Metrics could not be collected", { error });
        response.writeHead(500).end();
      },
    );
  };
  const folder = settings.metricsCertDir;
  const server = folder
    ? createHttpsServer(
        { cert: await readFile(join(folder, "tls.crt")), key: await readFile(join(folder, "tls.key")) },
        handle,
      )
    : createHttpServer(handle);
  const { host, port } = flags.metricsAddress;
  return createServerRunnable({ name: "metrics server", server, port, clock, ...(host ? { host } : {}) });
}
