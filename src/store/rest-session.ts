import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type ObjectBody,
  type ObjectHead,
  ObjectStoreError,
  type ObjectStoreErrorKind,
} from "../ports/object-store.ts";
import { type HttpAnswer, HttpClient, type HttpOptions, type HttpRequest, readText } from "./http-client.ts";

/** What a store said when it refused. */
export interface RestFault {
  status: number;
  /** The store's own word for it; empty when what answered was not the store. */
  code: string;
  message: string;
}

/** What one kind of store has of its own. */
export interface RestDialect {
  /** As a URL without credentials. */
  location: string;
  /** Signs a request; called for every attempt. */
  authorize(request: HttpRequest, signal?: AbortSignal): Promise<HttpRequest>;
  /** Forgets a token that the store refused; false when there is none. */
  renew(): boolean;
  readFault(answer: HttpAnswer, text: string): RestFault;
  classify(fault: RestFault): ObjectStoreErrorKind;
}

export interface RestOptions extends HttpOptions {
  /** Attempts of one call. @default 3 */
  maxAttempts?: number | undefined;
}

export interface RestCall {
  /** For messages, for example `PUT`. */
  operation: string;
  key: string;
  /** Statuses beside 2xx that are an answer, not a failure. */
  accept?: readonly number[];
  /** @default what the options say */
  attempts?: number;
  signal?: AbortSignal | undefined;
}

const firstPauseMs = 100;
const passing = new Set([408, 429, 500, 502, 503, 504]);

/** Sends calls to one store, again when they fail in passing, and gives every failure its kind. */
export class RestSession {
  readonly location: string;
  readonly #dialect: RestDialect;
  readonly #client: HttpClient;
  readonly #attempts: number;

  constructor(dialect: RestDialect, options: RestOptions) {
    this.location = dialect.location;
    this.#dialect = dialect;
    this.#client = new HttpClient(options);
    this.#attempts = Math.max(1, options.maxAttempts ?? 3);
  }

  async send(call: RestCall, request: HttpRequest): Promise<HttpAnswer> {
    const { signal } = call;
    const attempts = call.attempts ?? this.#attempts;
    let renewed = false;
    for (let attempt = 1; ; attempt++) {
      signal?.throwIfAborted();
      const signed = await this.#authorize(call, request);
      let failure: ObjectStoreError;
      try {
        const answer = await this.#client.send(signed, signal);
        if ((answer.status >= 200 && answer.status < 300) || call.accept?.includes(answer.status)) return answer;
        failure = await this.#refused(call, answer);
      } catch (error) {
        failure = this.wrap(call, error);
      }
      const { httpStatus } = failure;
      if (httpStatus === 401 && !renewed && this.#dialect.renew()) {
        renewed = true;
        continue;
      }
      // A refusal stands.
      const again = failure.kind === "unavailable" && (httpStatus === undefined || passing.has(httpStatus));
      if (!again || attempt >= attempts) throw failure;
      await this.#pause(firstPauseMs * 4 ** (attempt - 1), signal);
    }
  }

  /** As `send`, for an answer of which only the text matters. */
  async sendForText(call: RestCall, request: HttpRequest): Promise<{ answer: HttpAnswer; text: string }> {
    const answer = await this.send(call, request);
    try {
      return { answer, text: await readText(answer.body) };
    } catch (error) {
      throw this.wrap(call, error);
    }
  }

  /** As `send`, for an answer whose body means nothing. */
  async sendForHead(call: RestCall, request: HttpRequest): Promise<HttpAnswer> {
    return (await this.sendForText(call, request)).answer;
  }

  /** A failure of the store's own making. */
  fail(call: Pick<RestCall, "operation" | "key">, kind: ObjectStoreErrorKind, reason: string): ObjectStoreError {
    const { operation, key } = call;
    return new ObjectStoreError(`${operation} ${this.#where(key)}: ${reason}`, { kind, operation, key });
  }

  /** Wraps whatever a call threw. An abort is thrown on as the signal's own reason. */
  wrap({ operation, key, signal }: Omit<RestCall, "accept">, error: unknown): ObjectStoreError {
    if (signal?.aborted) throw signal.reason;
    if (error instanceof ObjectStoreError && error.operation !== "TOKEN") return error;
    const kind = error instanceof ObjectStoreError ? error.kind : "unavailable";
    const reason = error instanceof Error ? error.message || describeCode(error) : String(error);
    return new ObjectStoreError(`${operation} ${this.#where(key)}: ${reason}`, { kind, operation, key, cause: error });
  }

  /** The body of an answer, which ends early only by an error. */
  toBody(call: RestCall, answer: HttpAnswer, info: ObjectHead): ObjectBody {
    const { body } = answer;
    const size = answer.headers["content-length"];
    const expected = size === undefined ? undefined : Number(size);
    return { info, chunks: this.#chunks(call, body, expected), cancel: () => body.destroy() };
  }

  close(): void {
    this.#client.close();
  }

  async *#chunks(call: RestCall, body: IncomingMessage, expected: number | undefined): AsyncGenerator<Uint8Array> {
    let seen = 0;
    const stop = () => body.destroy();
    call.signal?.addEventListener("abort", stop, { once: true });
    try {
      for await (const chunk of body) {
        seen += (chunk as Uint8Array).length;
        yield chunk as Uint8Array;
      }
    } catch (error) {
      throw this.wrap(call, error);
    } finally {
      call.signal?.removeEventListener("abort", stop);
      body.destroy();
    }
    if (call.signal?.aborted) throw call.signal.reason;
    if (expected === undefined || seen === expected) return;
    throw this.fail(call, "unavailable", `the answer ended after ${seen} of ${expected} bytes`);
  }

  /** An issuer that failed was asked often enough by the one who fetches tokens. */
  async #authorize(call: RestCall, request: HttpRequest): Promise<HttpRequest> {
    try {
      return await this.#dialect.authorize(request, call.signal);
    } catch (error) {
      throw this.wrap(call, error);
    }
  }

  async #refused({ operation, key }: RestCall, answer: HttpAnswer): Promise<ObjectStoreError> {
    const text = await readText(answer.body, 64 * 1024).catch(() => "");
    const fault = this.#dialect.readFault(answer, text);
    const words = [`HTTP ${fault.status}`, fault.code, fault.message].filter((word) => word !== "").join(" ");
    return new ObjectStoreError(`${operation} ${this.#where(key)}: ${words}`, {
      kind: this.#dialect.classify(fault),
      operation,
      key,
      httpStatus: fault.status,
    });
  }

  #where(key: string): string {
    return key === "" ? this.location : `${this.location}/${key}`;
  }

  async #pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
    try {
      await sleep(ms, undefined, signal === undefined ? {} : { signal });
    } catch {
      throw signal?.reason;
    }
  }
}

function describeCode(error: Error): string {
  return (error as NodeJS.ErrnoException).code ?? error.name;
}
