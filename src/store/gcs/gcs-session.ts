import { type ObjectBody, type ObjectHead, ObjectStoreError, type PutOptions } from "../../ports/object-store.ts";
import { type HttpAnswer, type HttpRequest, headerOf } from "../http-client.ts";
import { type RestCall, RestSession } from "../rest-session.ts";
import { classifyGcsFault, readGcsFault, unclearAbsence } from "./gcs-faults.ts";
import type { GcsOptions } from "./gcs-options.ts";

/** An object as the service describes it. */
export interface GcsObject {
  name?: string;
  size?: string;
  updated?: string;
  md5Hash?: string;
  generation?: string;
  metadata?: Record<string, string>;
}

export interface GcsCall extends RestCall {
  method: "GET" | "POST" | "PUT" | "DELETE";
  /** Below the root of the service, without the query. */
  path: string;
  query?: Readonly<Record<string, string>>;
  headers?: Readonly<Record<string, string>>;
  body?: Uint8Array;
}

/** One bucket: authorizes and sends. */
export class GcsSession {
  readonly rest: RestSession;
  readonly location: string;
  readonly options: GcsOptions;
  readonly #origin: URL;
  readonly #root: string;

  constructor(options: GcsOptions) {
    this.options = options;
    this.location = `gs://${options.bucket}`;
    this.#origin = new URL(options.endpoint ?? "https://storage.googleapis.com");
    this.#root = this.#origin.pathname.replace(/\/+$/, "");
    const { tokens } = options;
    this.rest = new RestSession(
      {
        location: this.location,
        authorize: async (request, signal) => {
          if (!tokens) return request;
          const authorization = `Bearer ${await tokens.get(signal)}`;
          return { ...request, headers: { ...request.headers, authorization } };
        },
        renew: () => {
          tokens?.forget();
          return tokens !== undefined;
        },
        readFault: readGcsFault,
        classify: classifyGcsFault,
      },
      options,
    );
  }

  get bucketPath(): string {
    return `/storage/v1/b/${encodeURIComponent(this.options.bucket)}`;
  }

  get uploadPath(): string {
    return `/upload${this.bucketPath}/o`;
  }

  objectPath(key: string): string {
    return `${this.bucketPath}/o/${encodeURIComponent(key)}`;
  }

  send(call: GcsCall): Promise<HttpAnswer> {
    return this.rest.send(call, this.#request(call));
  }

  async sendForJson<T>(call: GcsCall): Promise<T> {
    const { text } = await this.rest.sendForText(call, this.#request(call));
    return this.parse<T>(call, text);
  }

  async sendForText(call: GcsCall): Promise<string> {
    return (await this.rest.sendForText(call, this.#request(call))).text;
  }

  sendForHead(call: GcsCall): Promise<HttpAnswer> {
    return this.rest.sendForHead(call, this.#request(call));
  }

  /** To the address of an upload, which the service itself named. */
  sendTo(address: URL, call: Omit<GcsCall, "path" | "query">): Promise<{ answer: HttpAnswer; text: string }> {
    const { method, headers = {}, body } = call;
    // Through an emulator's own name for itself nobody else may reach it.
    const request = { method, origin: this.#origin, path: `${address.pathname}${address.search}`, headers, body };
    return this.rest.sendForText(call, request);
  }

  parse<T>(call: Pick<GcsCall, "operation" | "key">, text: string): T {
    try {
      return JSON.parse(text) as T;
    } catch {
      throw this.rest.fail(call, "unavailable", "the answer is not the service's JSON");
    }
  }

  /** What the service is told of an object that is made; it keeps tags as metadata. */
  describe(key: string, options: PutOptions): Record<string, unknown> {
    const metadata = { ...options.tags, ...options.metadata };
    return {
      name: key,
      contentType: "application/octet-stream",
      ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    };
  }

  /** Conditions and encryption of an object that is made. */
  makeQuery(options: PutOptions): Record<string, string> {
    const { kmsKeyName } = this.options;
    return {
      ...(options.ifAbsent ? { ifGenerationMatch: "0" } : {}),
      ...(kmsKeyName === undefined ? {} : { kmsKeyName }),
    };
  }

  async get(key: string, signal?: AbortSignal, from = 0): Promise<ObjectBody> {
    const call: GcsCall = {
      operation: "GET",
      method: "GET",
      key,
      path: this.objectPath(key),
      query: { alt: "media" },
      headers: from > 0 ? { range: `bytes=${from}-` } : {},
      signal,
    };
    try {
      const answer = await this.send(call);
      return this.rest.toBody(call, answer, headOf(key, answer));
    } catch (error) {
      throw await this.clarify(error, key, signal);
    }
  }

  async head(key: string, signal?: AbortSignal): Promise<ObjectHead | undefined> {
    const call = { operation: "HEAD", method: "GET", key, path: this.objectPath(key), signal } as const;
    try {
      return toHead(key, await this.sendForJson<GcsObject>(call));
    } catch (error) {
      const clear = await this.clarify(error, key, signal);
      if (clear instanceof ObjectStoreError && clear.kind === "notFound") return undefined;
      throw clear;
    }
  }

  /** A 404 that does not say what is missing: a listing tells, since it fails without the bucket only. */
  async clarify(error: unknown, key: string, signal?: AbortSignal): Promise<unknown> {
    if (!(error instanceof ObjectStoreError) || error.httpStatus !== 404 || error.kind !== "unavailable") return error;
    const { operation, message } = error;
    const fields = { operation, key, httpStatus: 404, cause: error };
    const call = { operation: "LIST", method: "GET", key, path: `${this.bucketPath}/o`, signal } as const;
    try {
      const page = await this.sendForJson<{ items?: GcsObject[] }>({
        ...call,
        query: { prefix: key, maxResults: "1" },
      });
      if (key !== "" && page.items?.[0]?.name === key) return error;
      return new ObjectStoreError(message, { ...fields, kind: key === "" ? "unavailable" : "notFound" });
    } catch (second) {
      if (!(second instanceof ObjectStoreError)) return second;
      if (second.kind === "bucketMissing" || isUnclearAbsence(second)) {
        return new ObjectStoreError(message, { ...fields, kind: "bucketMissing" });
      }
      return second;
    }
  }

  #request({ method, path, query = {}, headers = {}, body }: GcsCall): HttpRequest {
    const pairs = Object.entries(query).map((pair) => pair.map(encodeURIComponent).join("="));
    const whole = `${this.#root}${path}${pairs.length === 0 ? "" : `?${pairs.join("&")}`}`;
    return { method, origin: this.#origin, path: whole, headers, body };
  }
}

/** A 404 in the service's form, which a proxy's is not. */
function isUnclearAbsence(error: ObjectStoreError): boolean {
  return error.httpStatus === 404 && error.message.includes(`HTTP 404 ${unclearAbsence}`);
}

/** The facts of an object. */
export function toHead(key: string, { size = "0", updated, metadata = {} }: GcsObject): ObjectHead {
  const modified = Date.parse(updated ?? "");
  return { key, size: Number(size), modifiedMs: Number.isNaN(modified) ? undefined : modified, metadata };
}

function headOf(key: string, { headers }: HttpAnswer): ObjectHead {
  const modified = Date.parse(headers["last-modified"] ?? "");
  const start = "x-goog-meta-";
  const metadata = Object.keys(headers)
    .filter((name) => name.startsWith(start))
    .map((name) => [name.slice(start.length), headerOf(headers, name) ?? ""]);
  return {
    key,
    size: Number(headers["content-length"] ?? headers["x-goog-stored-content-length"] ?? 0),
    modifiedMs: Number.isNaN(modified) ? undefined : modified,
    metadata: Object.fromEntries(metadata) as Record<string, string>,
  };
}
