import type { status } from "@grpc/grpc-js";

/** A refusal as the caller is to see it: the name of a gRPC status and a text for events. */
export class CsiError extends Error {
  override readonly name = "CsiError";
  constructor(
    readonly code: keyof typeof status,
    message: string,
  ) {
    super(message);
  }
}
