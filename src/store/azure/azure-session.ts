import type { ObjectBody, ObjectHead, PutOptions } from "../../ports/object-store.ts";
import type { BatchPart } from "../batch-removal.ts";
import { type HttpAnswer, type HttpRequest, headerOf } from "../http-client.ts";
import { type RestCall, RestSession } from "../rest-session.ts";
import { classifyAzureFault, readAzureFault } from "./azure-faults.ts";
import type { AzureOptions } from "./azure-options.ts";
import { signByKey } from "./azure-signature.ts";

const version = "2021-12-02";

export interface AzureCall extends RestCall {
  method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  /** Of a blob; the container itself when empty. */
  query?: Readonly<Record<string, string>>;
  headers?: Readonly<Record<string, string>>;
  body?: Uint8Array;
}

/** One container: signs and sends. */
export class AzureSession {
  readonly rest: RestSession;
  readonly location: string;
  readonly #options: AzureOptions;
  readonly #origin: URL;
  readonly #root: string;

  constructor(options: AzureOptions) {
    this.#options = options;
    this.#origin = new URL(options.endpoint);
    this.#root = `${this.#origin.pathname.replace(/\/+$/, "")}/${encodeURIComponent(options.container)}`;
    this.location = `${options.endpoint.replace(/\/+$/, "")}/${options.container}`;
    const { authorization } = options;
    this.rest = new RestSession(
      {
        location: this.location,
        authorize: (request, signal) => this.#authorize(request, signal),
        renew: () => {
          if (authorization.kind !== "token") return false;
          authorization.source.forget();
          return true;
        },
        readFault: readAzureFault,
        classify: classifyAzureFault,
      },
      options,
    );
  }

  send(call: AzureCall): Promise<HttpAnswer> {
    return this.rest.send(call, this.#request(call));
  }

  sendForText(call: AzureCall): Promise<{ answer: HttpAnswer; text: string }> {
    return this.rest.sendForText(call, this.#request(call));
  }

  sendForHead(call: AzureCall): Promise<HttpAnswer> {
    return this.rest.sendForHead(call, this.#request(call));
  }

  /** What every request that makes an object carries. */
  objectHeaders(options: PutOptions): Record<string, string> {
    const { encryptionScope } = this.#options;
    const tags = Object.entries(options.tags ?? {}).map((pair) => pair.map(encodeURIComponent).join("="));
    const metadata = Object.entries(options.metadata ?? {}).map(([name, value]) => [metadataHeader(name), value]);
    return {
      ...(options.ifAbsent ? { "if-none-match": "*" } : {}),
      ...(tags.length === 0 ? {} : { "x-ms-tags": tags.join("&") }),
      ...this.encryptionHeaders(encryptionScope),
      ...Object.fromEntries(metadata),
    };
  }

  encryptionHeaders(scope = this.#options.encryptionScope): Record<string, string> {
    return scope === undefined ? {} : { "x-ms-encryption-scope": scope };
  }

  async get(key: string, signal?: AbortSignal, from = 0): Promise<ObjectBody> {
    const headers = from > 0 ? { "x-ms-range": `bytes=${from}-` } : {};
    const call: AzureCall = { operation: "GET", method: "GET", key, headers, signal };
    const answer = await this.send(call);
    return this.rest.toBody(call, answer, headOf(key, answer));
  }

  /** A request as a part of a batch: signed by itself, but for the version, which is that of the batch. */
  async toPart(call: AzureCall): Promise<BatchPart> {
    const headers = { ...call.headers, "x-ms-date": new Date().toUTCString() };
    return this.#sign({ ...this.#request(call), headers }, call.signal);
  }

  #authorize(request: HttpRequest, signal: AbortSignal | undefined): Promise<HttpRequest> {
    const headers = { ...request.headers, "x-ms-date": new Date().toUTCString(), "x-ms-version": version };
    return this.#sign({ ...request, headers }, signal);
  }

  async #sign(request: HttpRequest, signal: AbortSignal | undefined): Promise<HttpRequest> {
    const { authorization, account } = this.#options;
    switch (authorization.kind) {
      case "key":
        return signByKey(request, account, authorization.key);
      case "sas": {
        const token = authorization.token.replace(/^\?/, "");
        const path = `${request.path}${request.path.includes("?") ? "&" : "?"}${token}`;
        return { ...request, path };
      }
      case "token": {
        const token = await authorization.source.get(signal);
        return { ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } };
      }
    }
  }

  #request({ method, key, query = {}, headers = {}, body }: AzureCall): HttpRequest {
    const blob = query["restype"] === "container" ? "" : `/${key.split("/").map(encodeURIComponent).join("/")}`;
    const pairs = Object.entries(query).map((pair) => pair.map(encodeURIComponent).join("="));
    const path = `${this.#root}${blob}${pairs.length === 0 ? "" : `?${pairs.join("&")}`}`;
    return { method, origin: this.#origin, path, headers, body };
  }
}

/** The facts of an object that an answer's headers tell. */
export function headOf(key: string, { headers }: HttpAnswer): ObjectHead {
  const modified = Date.parse(headers["last-modified"] ?? "");
  const metadata = Object.keys(headers)
    .filter((name) => name.startsWith(metadataStart))
    .map((name) => [name.slice(metadataStart.length).replaceAll("_", "-"), headerOf(headers, name) ?? ""]);
  return {
    key,
    size: Number(headers["content-length"] ?? 0),
    modifiedMs: Number.isNaN(modified) ? undefined : modified,
    metadata: Object.fromEntries(metadata) as Record<string, string>,
  };
}

const metadataStart = "x-ms-meta-";

/** Names must be such as C# takes for an identifier. */
function metadataHeader(name: string): string {
  return `${metadataStart}${name.replaceAll("-", "_")}`;
}
