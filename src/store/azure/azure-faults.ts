import type { ObjectStoreErrorKind } from "../../ports/object-store.ts";
import { type HttpAnswer, headerOf } from "../http-client.ts";
import type { RestFault } from "../rest-session.ts";
import { textOf } from "./azure-listing.ts";

const kinds: Readonly<Record<string, ObjectStoreErrorKind>> = {
  BlobNotFound: "notFound",
  ResourceNotFound: "notFound",
  ContainerNotFound: "bucketMissing",
  // The account may be one whose key has no right to this service, or one that is being moved.
  AccountIsDisabled: "denied",
  AuthenticationFailed: "denied",
  AuthorizationFailure: "denied",
  AuthorizationPermissionMismatch: "denied",
  AuthorizationProtocolMismatch: "denied",
  AuthorizationSourceIPMismatch: "denied",
  InsufficientAccountPermissions: "denied",
  InvalidAuthenticationInfo: "denied",
  NoAuthenticationInformation: "denied",
  Md5Mismatch: "corrupt",
  InvalidMd5: "corrupt",
  Crc64Mismatch: "corrupt",
  BlobAlreadyExists: "conflict",
  ConditionNotMet: "conflict",
  ContainerAlreadyExists: "conflict",
  // What a signature that may create but not write says about a name that is taken.
  UnauthorizedBlobOverwrite: "conflict",
  BlobArchived: "invalid",
  BlobImmutableDueToPolicy: "invalid",
  InternalError: "unavailable",
  OperationTimedOut: "unavailable",
  ServerBusy: "unavailable",
};

/** What a refusal says about the object. Only the service's own word makes it `notFound`. */
export function classifyAzureFault({ status, code }: RestFault): ObjectStoreErrorKind {
  const known = Object.hasOwn(kinds, code) ? kinds[code] : undefined;
  if (known) return known;
  if (status === 401 || status === 403) return "denied";
  if (status === 412) return "conflict";
  if ([400, 405, 411, 413, 416, 501].includes(status)) return "invalid";
  return "unavailable";
}

/** The service names the fault in a header, which answers without a body have too. */
export function readAzureFault({ status, headers }: HttpAnswer, text: string): RestFault {
  const code = headerOf(headers, "x-ms-error-code") ?? textOf(text, "Code") ?? "";
  const message = (textOf(text, "Message") ?? "").split("\n")[0] ?? "";
  const request = headerOf(headers, "x-ms-request-id");
  return { status, code, message: [message, request ? `(request ${request})` : ""].filter((part) => part).join(" ") };
}
