import { KubeError, type KubeErrorKind } from "../ports/kube-api.ts";

/** The `Status` object that the server answers failures with. */
export interface StatusBody {
  kind?: string;
  message?: string;
  reason?: string;
  code?: number;
  details?: { name?: string; retryAfterSeconds?: number; causes?: { reason?: string }[] };
}

/** Facts about the request that an answer belongs to. */
export interface RequestFacts {
  /** For example `patch clusters ns/name`. */
  what: string;
  /** Whether it changes something. */
  write: boolean;
}

/** The error for an HTTP answer that is no success. */
export function errorFromAnswer(
  facts: RequestFacts,
  status: number,
  body: string,
  headers: { retryAfter?: string | undefined } = {},
): KubeError {
  const parsed = parseStatus(body);
  const kind = classifyStatus(status, parsed);
  const retryAfterMs = parseRetryAfterMs(headers.retryAfter) ?? secondsToMs(parsed?.details?.retryAfterSeconds);
  const text = parsed?.message ?? (body.trim().slice(0, 300) || "no explanation");
  return new KubeError(`${facts.what}: ${status} ${parsed?.reason ?? kind}: ${text}`, {
    kind,
    status,
    // The server (or a proxy before it) may fail after the change reached etcd; 429 is refused before anything is done.
    outcomeUnknown: facts.write && status >= 500,
    namespaceTerminating: parsed?.details?.causes?.some((it) => it.reason === "NamespaceTerminating") ?? false,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

/** The error for a `Status` inside a watch that began with 200. */
export function errorFromWatchStatus(facts: RequestFacts, status: StatusBody): KubeError {
  const code = status.code ?? 500;
  return new KubeError(`${facts.what}: ${code} ${status.reason ?? ""}: ${status.message ?? "no explanation"}`, {
    kind: classifyStatus(code, status),
    status: code,
    ...(status.details?.retryAfterSeconds ? { retryAfterMs: status.details.retryAfterSeconds * 1000 } : {}),
  });
}

/** Failures before the request can have left this machine. */
const neverSent = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENETDOWN",
  "EADDRNOTAVAIL",
  "UND_ERR_CONNECT_TIMEOUT",
  "CERT_HAS_EXPIRED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "ERR_TLS_CERT_ALTNAME_INVALID",
]);

/** The error for a request that got no answer. */
export function errorFromFailure(facts: RequestFacts, cause: unknown, timedOutAfterMs?: number): KubeError {
  if (cause instanceof KubeError) return cause;
  const code = findCode(cause);
  const sent = code === undefined || !neverSent.has(code);
  const why = timedOutAfterMs === undefined ? describe(cause, code) : `no answer within ${timedOutAfterMs} ms`;
  return new KubeError(`${facts.what}: ${why}`, {
    kind: "unavailable",
    status: 0,
    outcomeUnknown: facts.write && sent,
    cause,
  });
}

/** Whether a failed read hit a connection that the server had closed while it was idle, so that a new one may work. */
export function isStaleConnection(error: unknown): boolean {
  const code = findCode(error);
  return code === "UND_ERR_SOCKET" || code === "ECONNRESET" || code === "EPIPE";
}

function classifyStatus(status: number, body: StatusBody | undefined): KubeErrorKind {
  switch (status) {
    case 400:
    case 422:
      return "invalid";
    case 401:
    case 403:
      return "forbidden";
    case 404:
      // Only the server's own word about a named object means absence. A proxy's page, or the answer for a kind that is
      // not (yet) served, must not look like "not found".
      return body?.reason === "NotFound" && body.details?.name ? "notFound" : "other";
    case 409:
      return body?.reason === "AlreadyExists" ? "alreadyExists" : "conflict";
    case 410:
      return "gone";
    case 408:
    case 429:
      return "unavailable";
    default:
      return status >= 500 ? "unavailable" : "other";
  }
}

function parseStatus(body: string): StatusBody | undefined {
  if (!body.startsWith("{")) return undefined;
  try {
    const value = JSON.parse(body) as StatusBody;
    return value.kind === "Status" ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Only the form in seconds is used by API servers. */
function parseRetryAfterMs(value: string | undefined): number | undefined {
  if (value === undefined || !/^\d+$/.test(value.trim())) return undefined;
  return Number(value) * 1000;
}

function secondsToMs(seconds: number | undefined): number | undefined {
  return seconds ? seconds * 1000 : undefined;
}

function findCode(error: unknown): string | undefined {
  for (let current: unknown = error, depth = 0; current && depth < 5; depth++) {
    if (current instanceof AggregateError && current.errors.length > 0) return findCode(current.errors[0]);
    const { code, cause } = current as { code?: unknown; cause?: unknown };
    if (typeof code === "string") return code;
    current = cause;
  }
  return undefined;
}

function describe(cause: unknown, code: string | undefined): string {
  const text = cause instanceof Error ? cause.message || cause.name : String(cause);
  return code && !text.includes(code) ? `${text} (${code})` : text;
}
