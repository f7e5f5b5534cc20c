import type { ObjectStoreErrorKind } from "../../ports/object-store.ts";
import type { HttpAnswer } from "../http-client.ts";
import type { RestFault } from "../rest-session.ts";

/** Word of our own for a 404 in the service's form that does not say what is missing. */
export const unclearAbsence = "notFound";

/** What a refusal says about the object. Only the service's own word makes it `notFound`. */
export function classifyGcsFault({ status, code, message }: RestFault): ObjectStoreErrorKind {
  if (code === "CredentialsRefused" || status === 401 || status === 403) {
    return code === "rateLimitExceeded" || code === "userRateLimitExceeded" ? "unavailable" : "denied";
  }
  if (status === 404 && code !== "") {
    if (/no such object/i.test(message)) return "notFound";
    if (/bucket does not exist/i.test(message)) return "bucketMissing";
    return "unavailable";
  }
  if (status === 412 || (status === 409 && code === "conflict")) return "conflict";
  if (status === 400 && /md5|crc32c|hash|checksum/i.test(message)) return "corrupt";
  if ([400, 405, 411, 413, 416, 501].includes(status)) return "invalid";
  return "unavailable";
}

/** The service answers with JSON; only downloads are refused by plain text. */
export function readGcsFault({ status }: HttpAnswer, text: string): RestFault {
  const plain = text.trim().split("\n")[0] ?? "";
  try {
    const { error } = JSON.parse(text) as { error?: { message?: unknown; errors?: { reason?: unknown }[] } };
    const reason = error?.errors?.[0]?.reason;
    const message = typeof error?.message === "string" ? error.message : "";
    const code = typeof reason === "string" && reason !== "" ? reason : status === 404 && error ? unclearAbsence : "";
    return { status, code, message };
  } catch {
    const ours = /^(No such object|The specified bucket does not exist)/i.test(plain);
    return { status, code: ours ? unclearAbsence : "", message: plain.startsWith("<") ? "" : plain.slice(0, 300) };
  }
}
