import type { WalFailureKind } from "../barman/failure-class.ts";
import { findObjectStoreError, type ObjectStoreErrorKind } from "../ports/object-store.ts";
import { CorruptStreamError } from "../store/codecs.ts";

/** Why a WAL file was not archived or restored. */
export class WalError extends Error {
  override readonly name = "WalError";
  readonly kind: WalFailureKind;

  constructor(kind: WalFailureKind, message: string, cause?: unknown) {
    super(message, { cause });
    this.kind = kind;
  }

  /** Gives any failure its kind; the text says what was attempted, then what the cause said. */
  static from(attempt: string, error: unknown): WalError {
    if (error instanceof WalError) return error;
    const text = error instanceof Error ? error.message : String(error);
    return new WalError(kindOf(error), `${attempt}: ${text}`, error);
  }
}

const kinds: Readonly<Record<ObjectStoreErrorKind, WalFailureKind>> = {
  notFound: "notFound",
  // Without its bucket nobody knows what the archive held: recovery must not end over a mistyped name.
  bucketMissing: "unavailable",
  denied: "denied",
  conflict: "conflict",
  corrupt: "unavailable",
  invalid: "local",
  unavailable: "unavailable",
};

function kindOf(error: unknown): WalFailureKind {
  const fromStore = findObjectStoreError(error);
  if (fromStore) return kinds[fromStore.kind];
  // Half a body looks damaged; the next attempt may get all of it.
  return error instanceof CorruptStreamError ? "unavailable" : "local";
}
