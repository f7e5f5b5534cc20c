// Plain requests over sockets that are kept: what the stores whose libraries would cost too much memory are reached with.
import { Agent as HttpAgent, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { StoreProxy } from "./proxy.ts";

export interface HttpOptions {
  /** PEM certificates that replace the system's roots. */
  ca?: string | undefined;
  /** Longest time without a byte in either direction. @default 60000 */
  readTimeoutMs?: number | undefined;
  /** Sockets at once. @default 32 */
  maxSockets?: number | undefined;
  /** @default none */
  proxy?: StoreProxy | undefined;
}

export interface HttpRequest {
  method: string;
  /** Scheme and host; a path in it is not looked at. */
  origin: URL;
  /** As it goes over the wire, the query included. */
  path: string;
  headers: Readonly<Record<string, string>>;
  body?: Uint8Array | undefined;
}

export interface HttpAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  body: IncomingMessage;
}

/** Sends requests; gives up on nobody's behalf: a failure of the line is the promise's. */
export class HttpClient {
  readonly #http: HttpAgent;
  readonly #https: HttpsAgent;
  readonly #readTimeoutMs: number;

  constructor({ ca, readTimeoutMs = 60_000, maxSockets = 32, proxy }: HttpOptions = {}) {
    const sockets = { keepAlive: true, maxSockets, noDelay: true, ...(proxy ? { proxyEnv: { ...proxy } } : {}) };
    this.#http = new HttpAgent(sockets);
    this.#https = new HttpsAgent(ca === undefined ? sockets : { ...sockets, ca });
    this.#readTimeoutMs = readTimeoutMs;
  }

  send({ method, origin, path, headers, body }: HttpRequest, signal?: AbortSignal): Promise<HttpAnswer> {
    const secure = origin.protocol === "https:";
    return new Promise((resolve, reject) => {
      const outgoing = (secure ? httpsRequest : httpRequest)({
        method,
        // Brackets belong to the URL, not to the address.
        host: origin.hostname.replace(/^\[|\]$/g, ""),
        ...(origin.port === "" ? {} : { port: Number(origin.port) }),
        path,
        headers: body === undefined ? headers : { ...headers, "content-length": String(body.length) },
        agent: secure ? this.#https : this.#http,
        timeout: this.#readTimeoutMs,
        ...(signal === undefined ? {} : { signal }),
      });
      outgoing.once("timeout", () => outgoing.destroy(new Error(`no answer for ${this.#readTimeoutMs} ms`)));
      outgoing.on("error", reject);
      outgoing.once("response", (incoming) => {
        // A body that is cut before anybody listens must not end the process.
        incoming.on("error", () => undefined);
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: incoming });
      });
      outgoing.end(body);
    });
  }

  close(): void {
    this.#http.destroy();
    this.#https.destroy();
  }
}

/** The body as text, of which no more than `mostBytes` are kept. @default 16 MiB */
export async function readText(body: AsyncIterable<unknown>, mostBytes = 16 * 1024 * 1024): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += (chunk as Uint8Array).length;
    if (size > mostBytes) break;
    chunks.push(chunk as Uint8Array);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** One value of a header that servers send once. */
export function headerOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}
