import { findObjectStoreError, type ObjectStoreErrorKind } from "../../ports/object-store.ts";
import { CorruptStreamError } from "../../store/codecs.ts";
import type { BaseFailureKind } from "./types.ts";

/** Why a base backup was not taken or not restored. */
export class BaseError extends Error {
  override readonly name = "BaseError";
  readonly kind: BaseFailureKind;

  constructor(kind: BaseFailureKind, message: string, cause?: unknown) {
    super(message, { cause });
    this.kind = kind;
  }

  /** Whether the same call may succeed later without anybody changing its input. */
  get retryable(): boolean {
    return this.kind === "unavailable" || this.kind === "denied" || this.kind === "walMissing";
  }

  /** Gives any failure its kind; the text says what was attempted, then what the cause said. */
  static from(attempt: string, error: unknown, signal?: AbortSignal): BaseError {
    if (error instanceof BaseError) return error;
    const text = error instanceof Error ? error.message : String(error);
    if (signal?.aborted) return new BaseError("cancelled", `${attempt}: cancelled: ${reasonOf(signal)}`, error);
    return new BaseError(kindOf(error), `${attempt}: ${text}`, error);
  }
}

const kinds: Readonly<Record<ObjectStoreErrorKind, BaseFailureKind>> = {
  notFound: "notFound",
  bucketMissing: "unavailable",
  denied: "denied",
  conflict: "invalid",
  corrupt: "unavailable",
  invalid: "invalid",
  unavailable: "unavailable",
};

function kindOf(error: unknown): BaseFailureKind {
  const fromStore = findObjectStoreError(error);
  if (fromStore) return kinds[fromStore.kind];
  return error instanceof CorruptStreamError ? "damaged" : "local";
}

function reasonOf(signal: AbortSignal): string {
  return signal.reason instanceof Error ? signal.reason.message : String(signal.reason);
}
