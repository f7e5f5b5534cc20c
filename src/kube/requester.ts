import type { Clock, Random } from "../ports/clock.ts";
import { isKubeError, KubeError } from "../ports/kube-api.ts";
import { planRetry } from "../runtime/backoff.ts";
import { errorFromAnswer, errorFromFailure, isStaleConnection, type RequestFacts } from "./error-classification.ts";
import type { HttpAnswer, HttpRequest, HttpTransport } from "./http-transport.ts";
import type { RateLimiter } from "./rate-limiter.ts";

export interface JsonRequest {
  /** For messages, for example `get pods ns/name`. */
  what: string;
  method: HttpRequest["method"];
  path: string;
  query?: Record<string, string | undefined>;
  body?: unknown;
  contentType?: string;
  signal?: AbortSignal | undefined;
  /** Bound for everything, repetitions included. */
  timeoutMs?: number | undefined;
  /** Whether a read may be repeated. Writes never are. @default true */
  repeat?: boolean;
}

/** Turns requests into parsed answers or KubeErrors, within a bound. */
export interface Requester {
  json(request: JsonRequest): Promise<unknown>;
  /** Begins a stream; only its beginning is bounded. */
  stream(request: {
    what: string;
    path: string;
    query: Record<string, string | undefined>;
    signal?: AbortSignal | undefined;
  }): Promise<AsyncIterable<Uint8Array>>;
  /** A KubeError for whatever was thrown, a caller's own abort included. */
  failure(facts: RequestFacts, error: unknown): KubeError;
}

export interface RequesterOptions {
  transport: HttpTransport;
  clock: Clock;
  random: Random;
  timeoutMs: number;
  limiter: RateLimiter;
}

/** Reads are repeated when the server asks for patience or had closed an idle connection. */
const readRetries = { baseMs: 200, maxMs: 5_000, jitter: 0.2, maxAttempts: 4 };

/** Creates the requester of one client. */
export function createRequester(options: RequesterOptions): Requester {
  const failure: Requester["failure"] = (facts, error) => errorFromFailure(facts, error);
  return {
    failure,
    async json(request) {
      const facts = { what: request.what, write: request.method !== "GET" };
      const timeoutMs = request.timeoutMs ?? options.timeoutMs;
      return withDeadline(options.clock, timeoutMs, request.signal, facts, async (signal) => {
        const send = () => sendJson(options, request, facts, signal);
        return facts.write || request.repeat === false ? send() : repeatRead(options, timeoutMs, signal, send);
      });
    },
    async stream(request) {
      const facts = { what: request.what, write: false };
      const begun = new AbortController();
      const cancel = new AbortController();
      const signal = request.signal ? AbortSignal.any([request.signal, cancel.signal]) : cancel.signal;
      const late = options.clock.sleep(options.timeoutMs, begun.signal).then(
        () =>
          cancel.abort(
            new KubeError(`${facts.what}: no answer within ${options.timeoutMs} ms`, {
              kind: "unavailable",
              status: 0,
            }),
          ),
        () => undefined,
      );
      try {
        const answer = await authorized(options.transport, { method: "GET", ...request, signal }, true);
        if (answer.status !== 200) throw errorFromAnswer(facts, answer.status, await answer.text(), answer);
        return answer.body;
      } catch (error) {
        throw failure(facts, cancel.signal.aborted ? cancel.signal.reason : error);
      } finally {
        begun.abort();
        void late;
      }
    },
  };
}

async function sendJson(options: RequesterOptions, request: JsonRequest, facts: RequestFacts, signal: AbortSignal) {
  await takeTurn(options.limiter, facts, signal);
  const { method, path, query, body, contentType } = request;
  const answer = await authorized(options.transport, {
    method,
    path,
    signal,
    ...(query ? { query } : {}),
    ...(body === undefined ? {} : { body }),
    ...(contentType ? { contentType } : {}),
  });
  const text = await answer.text();
  if (answer.status < 200 || answer.status > 299) throw errorFromAnswer(facts, answer.status, text, answer);
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    const message = `${facts.what}: the answer is no JSON`;
    throw new KubeError(message, { kind: "unavailable", status: answer.status, outcomeUnknown: facts.write, cause });
  }
}

/** Nothing was sent when the wait for the client's own limit is cut short, and the error must say so. */
async function takeTurn(limiter: RateLimiter, facts: RequestFacts, signal: AbortSignal): Promise<void> {
  try {
    await limiter.take(signal);
  } catch (cause) {
    throw neverSent(facts, cause);
  }
}

function neverSent(facts: RequestFacts, cause: unknown): KubeError {
  return new KubeError(`${facts.what}: given up before it was sent`, { kind: "unavailable", status: 0, cause });
}

/** A refused token may just have been renewed on disk. Nothing was carried out, so this is safe for writes too. */
async function authorized(transport: HttpTransport, request: HttpRequest, stream = false): Promise<HttpAnswer> {
  const answer = await transport.send(request, { stream });
  if (answer.status !== 401) return answer;
  await answer.text();
  return transport.send(request, { stream, freshToken: true });
}

async function repeatRead(
  options: RequesterOptions,
  timeoutMs: number,
  signal: AbortSignal,
  send: () => Promise<unknown>,
): Promise<unknown> {
  const started = options.clock.monotonicMs();
  for (let attempts = 1; ; attempts++) {
    try {
      return await send();
    } catch (error) {
      const asked = isKubeError(error, "unavailable") && (error.status === 429 || error.retryAfterMs !== undefined);
      const retryable = asked || (attempts === 1 && isStaleConnection(error));
      const retryAfterMs = isKubeError(error) ? error.retryAfterMs : undefined;
      const elapsedMs = options.clock.monotonicMs() - started;
      const policy = { ...readRetries, maxElapsedMs: timeoutMs };
      const decision = planRetry({ attempts, elapsedMs, retryable, retryAfterMs }, policy, options.random.float());
      if (!decision.retry) throw error;
      await options.clock.sleep(decision.delayMs, signal);
    }
  }
}

/** Runs with a signal that also aborts at the bound; then the error says so. */
async function withDeadline<T>(
  clock: Clock,
  timeoutMs: number,
  outer: AbortSignal | undefined,
  facts: RequestFacts,
  operation: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (outer?.aborted) throw neverSent(facts, outer.reason);
  const done = new AbortController();
  const deadline = new AbortController();
  clock.sleep(timeoutMs, done.signal).then(
    () => deadline.abort(),
    () => undefined,
  );
  const signal = outer ? AbortSignal.any([outer, deadline.signal]) : deadline.signal;
  try {
    return await operation(signal);
  } catch (error) {
    if (error instanceof KubeError) throw error;
    throw errorFromFailure(facts, error, deadline.signal.aborted ? timeoutMs : undefined);
  } finally {
    done.abort();
  }
}
