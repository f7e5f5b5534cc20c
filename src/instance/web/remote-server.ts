import { createServer as createHttpServer, type Server as HttpServer, type IncomingMessage } from "node:http";
import { createServer as createHttpsServer, type Server as HttpsServer } from "node:https";
import type { TLSSocket } from "node:tls";
import type { BackupReport, LeaseReport, PostgresStatus } from "../../api/pg-status.ts";
import { describeVolumeFailure } from "../../api/volume-failure.ts";
import type { BackupMode } from "../backup/backup-mode.ts";
import type { InstanceContext } from "../instance-context.ts";
import { promisePath, releasePath } from "../isolation/promise-client.ts";
import type { StatusCollector } from "../status.ts";
import { archivePartial } from "./archive-partial.ts";
import { answerBackupMode } from "./backup-mode-api.ts";
import {
  type HttpAnswer,
  type HttpExchange,
  type HttpHandler,
  jsonAnswer,
  listenerOf,
  textAnswer,
} from "./http-answer.ts";
import { checkOperator } from "./operator-auth.ts";
import type { ProbeChecks } from "./probe-checks.ts";

export interface RemoteServerDeps {
  context: InstanceContext;
  status: StatusCollector;
  probes: ProbeChecks;
  backupMode: BackupMode;
  /** What is told about the primary Lease and about backups beside the state of PostgreSQL. */
  leaseReport: () => LeaseReport & BackupReport;
  /** Answers a holder that asks for a promise. */
  promise: (request: IncomingMessage) => Promise<HttpAnswer>;
  /** Takes what a holder tells of its end. */
  release: (request: IncomingMessage) => Promise<HttpAnswer>;
  /** Replaces this instance manager by the one in the body. */
  update: (request: IncomingMessage, exchange: HttpExchange) => Promise<HttpAnswer>;
}

const updatePath = "/update";

async function answerOperator(
  deps: RemoteServerDeps,
  path: string,
  request: IncomingMessage,
  exchange: HttpExchange,
): Promise<HttpAnswer> {
  const peer = (request.socket as Partial<TLSSocket>).getPeerCertificate?.()?.raw;
  const refusal = checkOperator(peer, deps.context.state.cluster?.status?.operatorCertificateFingerprint);
  if (refusal) return refusal;
  if (path === updatePath) return deps.update(request, exchange);
  if (path === "/pg/controldata") return jsonAnswer(200, { data: await deps.context.data.controlText() });
  if (path === "/pg/mode/backup") return answerBackupMode(deps.backupMode, request);
  return archivePartial(deps.context);
}

async function answerStatus({ context, status, leaseReport }: RemoteServerDeps): Promise<HttpAnswer> {
  const { silentVolumes } = context.state;
  if (silentVolumes) {
    const silentMs = context.clock.monotonicMs() - silentVolumes.sinceMs;
    return jsonAnswer(503, describeVolumeFailure(silentVolumes.folders, silentMs));
  }
  const collected: PostgresStatus = await status.collect();
  return jsonAnswer(200, { ...collected, cnpgTs: { ...collected.cnpgTs, ...leaseReport() } });
}

export function remoteHandler(deps: RemoteServerDeps): HttpHandler {
  return async (request, url, exchange) => {
    if (url.pathname !== updatePath) exchange.proceed();
    switch (url.pathname) {
      case "/pg/status":
        return answerStatus(deps);
      case promisePath:
        return deps.promise(request);
      case releasePath:
        return deps.release(request);
      case "/healthz":
        return deps.probes.liveness();
      case "/readyz":
        return deps.probes.probe("readiness");
      case "/startupz":
        return deps.probes.probe("startup");
      case "/failsafe":
        return textAnswer(200, "OK");
      case "/pg/controldata":
      case "/pg/mode/backup":
      case "/pg/archive/partial":
      case updatePath:
        return answerOperator(deps, url.pathname, request, exchange);
      default:
        return undefined;
    }
  };
}

/** A server whose certificate may change while it runs. */
export interface RemoteServer {
  listen(port: number): Promise<number>;
  /** Takes the certificate in use from now on; until the first one handshakes fail. */
  setCertificate(certificate: { cert: string; key: string }): void;
  close(): Promise<void>;
}

/** How long a request may take to arrive, in milliseconds. */
const bodyLimitMs = 20_000;

/** A whole instance manager may take longer than everything else that is sent here; its receiver watches its pace. */
function limitBody(request: IncomingMessage): void {
  if (request.complete || request.url === updatePath) return;
  const timer = setTimeout(() => request.complete || request.destroy(), bodyLimitMs);
  request.once("close", () => clearTimeout(timer));
}

/** The interface on port 8000 that the operator, the kubelet and the peers use. */
export function createRemoteServer(handler: HttpHandler, options: { tls: boolean }): RemoteServer {
  const limits = { headersTimeout: 3_000, requestTimeout: 0 };
  const listener = listenerOf(handler);
  const server: HttpServer | HttpsServer = options.tls
    ? createHttpsServer(
        // The client's certificate is asked for, and judged by its key where it matters.
        { minVersion: "TLSv1.3", requestCert: true, rejectUnauthorized: false, ...limits },
        listener,
      )
    : createHttpServer(limits, listener);
  server.on("request", limitBody);
  const asked = listenerOf(handler, { asked: true });
  server.on("checkContinue", (request, response) => {
    limitBody(request);
    asked(request, response);
  });
  return {
    listen: (port) => listen(server, port),
    setCertificate: ({ cert, key }) => {
      if ("setSecureContext" in server) server.setSecureContext({ cert, key, minVersion: "TLSv1.3" });
    },
    close: () => close(server),
  };
}

export function listen(server: HttpServer | HttpsServer, port: number, host?: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      const address = server.address();
      resolve(typeof address === "object" && address ? address.port : port);
    });
  });
}

export function close(server: HttpServer | HttpsServer): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
