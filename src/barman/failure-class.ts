/** Outcomes of archive and restore calls that their callers must tell apart. */
export type WalFailureKind =
  /** The archive certainly does not hold it. */
  | "notFound"
  /** This once, PostgreSQL should try streaming. */
  | "endOfWal"
  /** The request names no WAL file. */
  | "badName"
  /** The store could not be reached or failed: nothing is known of the object. */
  | "unavailable"
  /** The store refuses our credentials. */
  | "denied"
  /** The archive holds other bytes under the name, or WAL where none is expected. */
  | "conflict"
  /** This side's own files or programs failed. */
  | "local";

export type GrpcCodeName =
  | "NOT_FOUND"
  | "OUT_OF_RANGE"
  | "INVALID_ARGUMENT"
  | "UNAVAILABLE"
  | "FAILED_PRECONDITION"
  | "INTERNAL";

/** What a failure becomes on the wire, and whether the same call may be tried again. */
export interface FailureClass {
  grpc: GrpcCodeName;
  retryable: boolean;
  /** Exit code of Barman's tools for the same outcome. */
  barmanExit: 1 | 2 | 3 | 4;
}

/** Classifies an outcome (reference: each code is a contract with the instance side, which retries UNAVAILABLE only). */
export function classifyWalFailure(kind: WalFailureKind): FailureClass {
  switch (kind) {
    case "notFound":
      return { grpc: "NOT_FOUND", retryable: false, barmanExit: 1 };
    case "endOfWal":
      return { grpc: "OUT_OF_RANGE", retryable: false, barmanExit: 1 };
    case "badName":
      return { grpc: "INVALID_ARGUMENT", retryable: false, barmanExit: 3 };
    case "unavailable":
      return { grpc: "UNAVAILABLE", retryable: true, barmanExit: 2 };
    // Credentials are rotated and policies repaired while PostgreSQL waits: a recovery must not end over them.
    case "denied":
      return { grpc: "UNAVAILABLE", retryable: true, barmanExit: 4 };
    case "conflict":
      return { grpc: "FAILED_PRECONDITION", retryable: false, barmanExit: 4 };
    case "local":
      return { grpc: "INTERNAL", retryable: false, barmanExit: 4 };
  }
}
