import { type StatusName, statusCodes } from "../../rpc/status.ts";
import { WireError } from "../../rpc/wire/wire-error.ts";

/** A failure that a handler answers with a status of its choice; any other error reaches the client as UNKNOWN with its text. */
export class StatusError extends Error {
  override readonly name = "StatusError";
  readonly status: StatusName;

  constructor(status: Exclude<StatusName, "OK">, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.status = status;
  }
}

/** The status of whatever a handler threw. */
export function statusOf(error: unknown): { code: number; details: string; status: StatusName } {
  const details = error instanceof Error ? error.message : String(error);
  const status = statusNameOf(error);
  return { code: statusCodes[status], details, status };
}

function statusNameOf(error: unknown): StatusName {
  if (error instanceof StatusError) return error.status;
  // The request was not what the protocol says.
  if (error instanceof WireError) return "INVALID_ARGUMENT";
  return "UNKNOWN";
}
