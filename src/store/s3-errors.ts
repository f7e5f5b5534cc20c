import { ObjectStoreError, type ObjectStoreErrorKind } from "../ports/object-store.ts";

/** What the SDK's errors have in common, as far as they have it. */
interface SdkError {
  name?: string;
  message?: string;
  code?: string;
  $metadata?: { httpStatusCode?: number; requestId?: string; attempts?: number };
  $fault?: string;
}

const deniedCodes = new Set([
  "AccessDenied",
  "AllAccessDisabled",
  "AccountProblem",
  "ExpiredToken",
  "InvalidAccessKeyId",
  "InvalidToken",
  "RequestTimeTooSkewed",
  "SignatureDoesNotMatch",
  "CredentialsProviderError",
  "TokenProviderError",
]);
const corruptCodes = new Set(["BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch", "IncompleteBody"]);
const passingCodes = new Set(["RequestTimeout", "OperationAborted", "SlowDown", "InternalError", "ServiceUnavailable"]);

/** What a failed call says about the object. Only the store's own word makes it `notFound`: a 404 of a proxy does not. */
export function classifyS3Failure(name: string, status: number | undefined): ObjectStoreErrorKind {
  if (name === "NoSuchKey") return "notFound";
  if (name === "NoSuchBucket") return "bucketMissing";
  if (deniedCodes.has(name)) return "denied";
  if (corruptCodes.has(name)) return "corrupt";
  if (name === "PreconditionFailed" || name === "ConditionalRequestConflict" || status === 412) return "conflict";
  if (passingCodes.has(name)) return "unavailable";
  if (status === 401 || status === 403) return "denied";
  if (status === 501 || status === 405 || status === 301 || status === 400 || status === 411) return "invalid";
  return "unavailable";
}

/** Wraps whatever a call threw; an abort passes through as the signal's own reason. */
export function toStoreError(
  error: unknown,
  operation: string,
  location: string,
  key: string,
  signal?: AbortSignal,
): unknown {
  if (signal?.aborted) return signal.reason;
  if (error instanceof ObjectStoreError) return error;
  const cause: SdkError = typeof error === "object" && error !== null ? (error as SdkError) : {};
  const httpStatus = cause.$metadata?.httpStatusCode;
  const name = cause.name ?? "Error";
  const where = key === "" ? location : `${location}/${key}`;
  return new ObjectStoreError(`${operation} ${where}: ${describe(cause, name, httpStatus)}`, {
    kind: classifyS3Failure(name, httpStatus),
    operation,
    key,
    httpStatus,
    cause: error,
  });
}

function describe(cause: SdkError, name: string, httpStatus: number | undefined): string {
  // An answer to a HEAD has no body that could name the fault; the SDK's stand-ins say nothing.
  const word = cause.code ?? name;
  const said = cause.message === undefined || cause.message === name ? "" : cause.message;
  const parts = [
    httpStatus === undefined ? "" : `HTTP ${httpStatus}`,
    word === "Error" || word.startsWith("Unknown") ? "" : word,
    said.startsWith("Unknown") ? "" : said,
    cause.$metadata?.requestId ? `(request ${cause.$metadata.requestId})` : "",
  ];
  const text = parts.filter((part) => part !== "").join(" ");
  return text === "" ? "failed without a reason" : text;
}
