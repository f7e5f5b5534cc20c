import { BaseError } from "../../archive/base/base-error.ts";
import type { BaseFailureKind } from "../../archive/base/types.ts";
import type { StatusName } from "../../rpc/status.ts";
import { StatusError } from "../framework/status-error.ts";

const statuses: Readonly<Record<BaseFailureKind, Exclude<StatusName, "OK">>> = {
  notFound: "NOT_FOUND",
  notEmpty: "FAILED_PRECONDITION",
  unavailable: "UNAVAILABLE",
  // Credentials are repaired while somebody waits.
  denied: "UNAVAILABLE",
  walMissing: "UNAVAILABLE",
  damaged: "DATA_LOSS",
  postgres: "UNAVAILABLE",
  cancelled: "CANCELLED",
  local: "INTERNAL",
  invalid: "FAILED_PRECONDITION",
};

/** Runs work on a base backup so that its failures reach the client with the status that says whether a retry can help. */
export async function withBaseStatus<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof BaseError)) throw error;
    throw new StatusError(statuses[error.kind], error.message, { cause: error });
  }
}
