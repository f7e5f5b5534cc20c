import { ObjectStoreError, type ObjectStoreErrorKind } from "../ports/object-store.ts";
import { HttpClient, readText } from "./http-client.ts";
import type { StoreProxy } from "./proxy.ts";

export interface AccessToken {
  token: string;
  /** Milliseconds since the epoch. */
  expiresAtMs: number;
}

/** Fetches a token; every failure is an `ObjectStoreError`, as if the store had failed in the same way. */
export type FetchToken = (signal?: AbortSignal) => Promise<AccessToken>;

/** A token is replaced this long before it ends, as the libraries of the clouds do. */
const marginMs = 5 * 60_000;

/** Keeps a token while it is good; several who ask at once cause one request. */
export class TokenSource {
  readonly #fetch: FetchToken;
  #known: AccessToken | undefined;
  #asking: Promise<AccessToken> | undefined;

  constructor(fetch: FetchToken) {
    this.#fetch = fetch;
  }

  async get(signal?: AbortSignal): Promise<string> {
    signal?.throwIfAborted();
    const known = this.#known;
    if (known && known.expiresAtMs - marginMs > Date.now()) return known.token;
    this.#asking ??= this.#fetch().finally(() => {
      this.#asking = undefined;
    });
    try {
      this.#known = await this.#asking;
      return this.#known.token;
    } catch (error) {
      // Near its end, but good: better than none while the source is away.
      if (known && known.expiresAtMs > Date.now() + 10_000) return known.token;
      throw error;
    }
  }

  /** The next request fetches anew. */
  forget(): void {
    this.#known = undefined;
  }
}

export interface TokenRequest {
  method: "GET" | "POST" | "PUT";
  url: string;
  headers?: Readonly<Record<string, string>>;
  /** Sent as a form. */
  form?: Readonly<Record<string, string>>;
  json?: unknown;
  /** For issuers outside; what belongs to the machine is asked without. @default none */
  proxy?: StoreProxy | undefined;
}

const timeoutMs = 10_000;
const attempts = 3;

/** Sends a request to an issuer of tokens or a metadata server; a passing failure is tried again. */
export async function askIssuer(request: TokenRequest): Promise<string> {
  const { method, url, form, json } = request;
  const at = parseUrl(url);
  const body = form ? new URLSearchParams(form).toString() : json === undefined ? undefined : JSON.stringify(json);
  const type = form ? "application/x-www-form-urlencoded" : "application/json";
  const headers = { accept: "*/*", ...(body === undefined ? {} : { "content-type": type }), ...request.headers };
  const client = new HttpClient({ readTimeoutMs: timeoutMs, maxSockets: 1, proxy: request.proxy });
  let failure: ObjectStoreError | undefined;
  try {
    for (let attempt = 0; attempt < attempts; attempt++) {
      if (attempt > 0) await new Promise((resolve) => setTimeout(resolve, 200 * 4 ** (attempt - 1)));
      try {
        const answer = await client.send({
          method,
          origin: at,
          path: `${at.pathname}${at.search}`,
          headers,
          ...(body === undefined ? {} : { body: Buffer.from(body) }),
        });
        const text = await readText(answer.body, 256 * 1024);
        if (answer.status >= 200 && answer.status < 300) return text;
        const refused = answer.status < 500 && answer.status !== 429 && answer.status !== 408;
        const words = `${method} ${redact(at)} answered HTTP ${answer.status} ${readReason(text)}`.trim();
        failure = tokenFailure(refused ? "denied" : "unavailable", words);
        if (refused) break;
      } catch (error) {
        const { message, code } = error as NodeJS.ErrnoException;
        failure = tokenFailure("unavailable", `${method} ${redact(at)}: ${message || code || "failed"}`, error);
      }
    }
  } finally {
    client.close();
  }
  throw failure ?? tokenFailure("unavailable", `${redact(at)} was not asked`);
}

/** Why there is no token. */
export function tokenFailure(kind: ObjectStoreErrorKind, reason: string, cause?: unknown): ObjectStoreError {
  return new ObjectStoreError(`no access token: ${reason}`, { kind, operation: "TOKEN", key: "", cause });
}

/** Reads the answer of an issuer that follows OAuth. */
export function readToken(text: string, source: string): AccessToken {
  const answer = parseJson(text, source);
  const token = answer["access_token"];
  const lifetime = Number(answer["expires_in"]);
  if (typeof token !== "string" || token === "") throw tokenFailure("denied", `${source} named no access_token`);
  return { token, expiresAtMs: Date.now() + (Number.isFinite(lifetime) ? lifetime : 3600) * 1000 };
}

export function parseJson(text: string, source: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
  } catch {
    // The text may hold a secret, so nothing of it is told.
  }
  throw tokenFailure("denied", `${source} is not the JSON that was expected`);
}

function parseUrl(url: string): URL {
  const at = URL.parse(url);
  if (at?.protocol === "http:" || at?.protocol === "https:") return at;
  throw tokenFailure("denied", `${JSON.stringify(url)} is no address of an issuer of tokens`);
}

/** Queries may name identities, and answers of proxies repeat them. */
function redact(url: URL): string {
  return `${url.origin}${url.pathname}`;
}

function readReason(text: string): string {
  try {
    const { error, error_description: description } = JSON.parse(text) as Record<string, unknown>;
    const parts = [error, description].filter((part) => typeof part === "string");
    return parts.join(": ").split(/\r?\n/)[0]?.slice(0, 300) ?? "";
  } catch {
    return "";
  }
}
