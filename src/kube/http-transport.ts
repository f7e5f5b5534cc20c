import request from "undici/lib/api/api-request.js";
import Pool from "undici/lib/dispatcher/pool.js";
import type { KubeConnection } from "./connection.ts";

export interface HttpRequest {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  path: string;
  query?: Record<string, string | undefined>;
  body?: unknown;
  contentType?: string;
  signal: AbortSignal;
}

export interface HttpAnswer {
  status: number;
  retryAfter: string | undefined;
  /** Reads the rest; the connection is given back afterwards. */
  text(): Promise<string>;
  /** The rest as it arrives. */
  body: AsyncIterable<Uint8Array>;
}

/** Sends single requests; throws undici's errors as they are. */
export interface HttpTransport {
  /** `stream` uses connections of its own, so that watches never hold up short requests. */
  send(request: HttpRequest, options?: { stream?: boolean; freshToken?: boolean }): Promise<HttpAnswer>;
  close(): Promise<void>;
}

export interface HttpTransportOptions {
  userAgent: string;
  /** Bound for TCP and TLS set-up. */
  connectTimeoutMs: number;
  /** Connections for short requests; more requests wait in line. */
  maxConnections: number;
}

/** Shorter than the API server's own idle limit (90 s), so that we are the side that closes. */
const keepAliveTimeoutMs = 30_000;
/** A peer that vanished is noticed about ten seconds after this by the kernel, also on silent watches. */
const tcpKeepAliveMs = 15_000;

/** Connections to one API server, none shared with anything else in the process. */
export function createHttpTransport(connection: KubeConnection, options: HttpTransportOptions): HttpTransport {
  const shared = {
    // Over one HTTP/2 connection a lost packet stalls every watch at once.
    allowH2: false,
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: keepAliveTimeoutMs,
    keepAliveMaxTimeout: keepAliveTimeoutMs,
    connect: {
      timeout: options.connectTimeoutMs,
      keepAlive: true,
      keepAliveInitialDelay: tcpKeepAliveMs,
      rejectUnauthorized: !connection.insecureSkipTlsVerify,
      ...(connection.ca === undefined ? {} : { ca: connection.ca }),
      ...(connection.clientCert === undefined ? {} : { cert: connection.clientCert }),
      ...(connection.clientKey === undefined ? {} : { key: connection.clientKey }),
      ...(connection.serverName === undefined ? {} : { servername: connection.serverName }),
    },
  };
  const { origin, pathname } = new URL(connection.server);
  const prefix = pathname.replace(/\/+$/, "");
  const requests = new Pool(origin, { ...shared, connections: options.maxConnections });
  const streams = new Pool(origin, { ...shared, connections: null });
  return {
    async send({ method, path, query, body, contentType, signal }, { stream = false, freshToken = false } = {}) {
      const token = connection.token?.({ fresh: freshToken });
      const answer = await request.call(stream ? streams : requests, {
        method,
        path: prefix + path + formatQuery(query),
        signal,
        headers: {
          accept: "application/json",
          "user-agent": options.userAgent,
          ...(token ? { authorization: `Bearer ${token}` } : {}),
          ...(body === undefined ? {} : { "content-type": contentType ?? "application/json" }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const retryAfter = answer.headers["retry-after"];
      return {
        status: answer.statusCode,
        retryAfter: Array.isArray(retryAfter) ? retryAfter[0] : retryAfter,
        text: () => answer.body.text(),
        body: answer.body,
      };
    },
    async close() {
      await Promise.all([requests.destroy(), streams.destroy()]);
    },
  };
}

function formatQuery(query: HttpRequest["query"]): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) if (value !== undefined) parameters.set(name, value);
  const text = parameters.toString();
  return text ? `?${text}` : "";
}
