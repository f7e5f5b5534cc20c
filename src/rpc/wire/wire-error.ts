/** A message that breaks the protocol, or cannot be turned into one. */
export class WireError extends Error {
  override readonly name = "WireError";
}
