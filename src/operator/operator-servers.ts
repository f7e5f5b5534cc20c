import { readFile } from "node:fs/promises";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { join } from "node:path";
import { ports } from "../api/constants.ts";
import type { Metrics } from "../runtime/metrics.ts";
import type { CertificateMetrics, ProgramMetrics } from "../runtime/program-metrics.ts";
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

interface ServedPair {
  certificate: string;
  privateKey: string;
}

/** The server behind the webhooks and probes, and what keeps its certificate valid. */
export async function createWebhook(
  options: OperatorOptions,
  settings: OperatorSettings,
  signal: AbortSignal,
  facts: { volumeSnapshots: boolean },
  readiness: () => string | null,
  metrics: Pick<ProgramMetrics, "forCertificates" | "forWebhooks">,
  extension?: AdmissionExtension,
): Promise<{ server: Runnable; upkeep: Runnable }> {
  const { api, clock, logger, flags } = options;
  const folder = settings.webhookCertDir;
  const certificates = { api, clock, logger, settings };
  const load = async (stop: AbortSignal): Promise<ServedPair> => {
    if (folder) return readPair(folder, "apiserver");
    if (!settings.context.operatorNamespace) return createTransientCertificate(certificates);
    return ensureOperatorCertificates(certificates, stop);
  };
  const handlers = createAdmissionHandlers(settings.context, facts);
  const reads = metrics.forCertificates();
  const certificate = await load(signal);
  reads.read("success");
  const webhook = createWebhookServer({
    certificate,
    handlers,
    readiness,
    logger,
    clock,
    metrics: metrics.forWebhooks([...handlers.keys()]),
    ...(extension ? { extension } : {}),
  });
  const upkeep = createUpkeep(options, {
    what: "webhooks",
    everyMs: folder ? certificateFileCheckMs : certificateCheckMs,
    first: certificate,
    load,
    use: webhook.useCertificate,
    reads,
  });
  const port = flags.webhookPort || ports.operatorWebhook;
  return { server: createServerRunnable({ name: "webhook server", server: webhook.server, port, clock }), upkeep };
}

/** The server behind `/metrics`, and what keeps its certificate valid where it has one. */
export async function createMetricsServer(
  options: OperatorOptions,
  settings: OperatorSettings,
  metrics: Pick<Metrics, "contentType" | "render">,
): Promise<{ server: Runnable; upkeep?: Runnable }> {
  const { clock, flags, logger } = options;
  const handle: RequestListener = (request, response) => {
    if ((request.url ?? "").split("?")[0] !== "/metrics") {
      response.writeHead(404).end();
      return;
    }
    metrics.render().then(
      (text) => response.writeHead(200, { "content-type": metrics.contentType }).end(text),
      (error: unknown) => {
        logger.error("Metrics could not be collected", { error });
        response.writeHead(500).end();
      },
    );
  };
  const { host, port } = flags.metricsAddress;
  const listen = { name: "metrics server", port, clock, ...(host ? { host } : {}) };
  const folder = settings.metricsCertDir;
  if (!folder) return { server: createServerRunnable({ ...listen, server: createHttpServer(handle) }) };
  const load = () => readPair(folder, "tls");
  const first = await load();
  const server = createHttpsServer({ cert: first.certificate, key: first.privateKey }, handle);
  const use = (pair: ServedPair) => server.setSecureContext({ cert: pair.certificate, key: pair.privateKey });
  const upkeep = createUpkeep(options, { what: "metrics", everyMs: certificateFileCheckMs, first, load, use });
  return { server: createServerRunnable({ ...listen, server }), upkeep };
}

interface UpkeepOptions {
  /** What is served with the certificate, for messages. */
  what: string;
  everyMs: number;
  first: ServedPair;
  load(stop: AbortSignal): Promise<ServedPair>;
  use(pair: ServedPair): void;
  reads?: CertificateMetrics;
}

/** Looks at a certificate again and again, and has another one served from the next connection on. */
function createUpkeep({ clock, logger }: OperatorOptions, options: UpkeepOptions): Runnable {
  const { what, everyMs, first, load, use, reads } = options;
  return {
    name: `certificate of the ${what}`,
    async run(stop) {
      let current = first;
      while (!stop.aborted) {
        await clock.sleep(everyMs, stop).catch(() => undefined);
        if (stop.aborted) return;
        try {
          const next = await load(stop);
          reads?.read("success");
          if (next.certificate !== current.certificate) use(next);
          current = next;
        } catch (error) {
          reads?.read("error");
          logger.error(`Certificate of the ${what} could not be maintained`, { error });
        }
      }
    },
  };
}

async function readPair(folder: string, name: string): Promise<ServedPair> {
  const [certificate, privateKey] = await Promise.all([
    readFile(join(folder, `${name}.crt`), "utf8"),
    readFile(join(folder, `${name}.key`), "utf8"),
  ]);
  return { certificate, privateKey };
}
