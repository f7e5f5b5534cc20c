// gRPC status ↔ what a caller may do. Pure: the numbers are the protocol's, no library needed.
import type { PluginErrorKind } from "../ports/plugin.ts";

/** Numbers of the gRPC status codes. */
export const statusCodes = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;

export type StatusName = keyof typeof statusCodes;

const names = new Map<number, StatusName>(
  Object.entries(statusCodes).map(([name, code]): [number, StatusName] => [code, name as StatusName]),
);

/** Name of a status code; a number outside of the list counts as UNKNOWN, as the gRPC specification asks. */
export function statusName(code: number): StatusName {
  return names.get(code) ?? "UNKNOWN";
}

/** How a caller may react to a status; `details` tells apart the two meanings of RESOURCE_EXHAUSTED. */
export function classifyStatus(code: number, details = ""): PluginErrorKind {
  switch (statusName(code)) {
    // The archive's answers to "is there such a file": not there, and not there any more to come.
    case "NOT_FOUND":
    case "OUT_OF_RANGE":
      return "notFound";
    case "INVALID_ARGUMENT":
    case "ALREADY_EXISTS":
    case "PERMISSION_DENIED":
    case "UNAUTHENTICATED":
    case "FAILED_PRECONDITION":
    case "UNIMPLEMENTED":
    case "DATA_LOSS":
      return "refused";
    case "RESOURCE_EXHAUSTED":
      // Both gRPC libraries use this code for a message over the receiver's limit, which no repetition makes smaller.
      return /larger than max/i.test(details) ? "refused" : "unavailable";
    // UNKNOWN is what Go makes of any plain error, INTERNAL also of a reset stream: neither says anything for good.
    default:
      return "unavailable";
  }
}
