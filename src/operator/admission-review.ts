import { createPatch } from "rfc6902";

/** One object under review, as the API server sends it. */
export interface ReviewedObject {
  operation: string;
  object: unknown;
  oldObject: unknown;
}

/** What a webhook has to say about an object. */
export type ReviewOutcome =
  | { kind: "allowed"; warnings?: readonly string[] }
  /** The object with defaults filled in. */
  | { kind: "changed"; object: unknown }
  /** `message` is what the user reads. */
  | {
      kind: "denied";
      message: string;
      code: number;
      reason: string;
      /** Which object was refused, and each reason with its field. */
      details?: RefusalDetails;
      warnings?: readonly string[];
    };

export interface RefusalDetails {
  name: string;
  group: string;
  kind: string;
  causes: readonly { reason: string; message: string; field: string }[];
}

export type AdmissionHandler = (review: ReviewedObject) => ReviewOutcome;

/** Handlers by path. */
export type AdmissionHandlers = ReadonlyMap<string, AdmissionHandler>;

export interface AdmissionAnswer {
  status: number;
  body: string;
}

interface Review {
  apiVersion?: string;
  kind?: string;
  request?: { uid?: string; operation?: string; object?: unknown; oldObject?: unknown };
}

/** Adds to what our own rules say about an object, by the path of the webhook. */
export type AdmissionExtension = (
  path: string,
  review: ReviewedObject,
  outcome: ReviewOutcome,
) => Promise<ReviewOutcome>;

/** Answers one AdmissionReview (v1). Unreadable input is an HTTP 400, so that the API server reports the fault as ours. */
export function answerReview(text: string, handler: AdmissionHandler): AdmissionAnswer {
  const read = readReview(text);
  return "refusal" in read ? read.refusal : respond(read, handler(read.review));
}

/** The same, with somebody else's say after ours. */
export async function answerExtendedReview(
  path: string,
  text: string,
  handler: AdmissionHandler,
  extension: AdmissionExtension,
): Promise<AdmissionAnswer> {
  const read = readReview(text);
  if ("refusal" in read) return read.refusal;
  return respond(read, await extension(path, read.review, handler(read.review)));
}

interface ReadReview {
  uid: string;
  review: ReviewedObject;
}

function readReview(text: string): ReadReview | { refusal: AdmissionAnswer } {
  const refuse = (error: string) => ({ refusal: { status: 400, body: JSON.stringify({ error }) } });
  let review: Review;
  try {
    review = JSON.parse(text) as Review;
  } catch {
    return refuse("the request body is not JSON");
  }
  const request = review.request;
  if (!request?.uid) return refuse("the request is no AdmissionReview");
  const { uid, operation = "", object, oldObject } = request;
  return { uid, review: { operation, object, oldObject } };
}

function respond({ uid, review }: ReadReview, outcome: ReviewOutcome): AdmissionAnswer {
  const response = { uid, ...describe(outcome, review.object) };
  return {
    status: 200,
    body: JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response }),
  };
}

function describe(outcome: ReviewOutcome, before: unknown): Record<string, unknown> {
  switch (outcome.kind) {
    case "allowed":
      return { allowed: true, ...warningsOf(outcome.warnings) };
    case "changed": {
      const operations = createPatch(before, outcome.object);
      if (operations.length === 0) return { allowed: true };
      const patch = Buffer.from(JSON.stringify(operations), "utf8").toString("base64");
      return { allowed: true, patchType: "JSONPatch", patch };
    }
    case "denied":
      return {
        allowed: false,
        status: {
          status: "Failure",
          message: outcome.message,
          reason: outcome.reason,
          ...(outcome.details ? { details: outcome.details } : {}),
          code: outcome.code,
        },
        ...warningsOf(outcome.warnings),
      };
  }
}

function warningsOf(warnings: readonly string[] | undefined): Record<string, unknown> {
  return warnings && warnings.length > 0 ? { warnings } : {};
}
