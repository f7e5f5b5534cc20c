/** A JSON patch that is malformed, or does not fit its document. */
export class PatchError extends Error {
  override readonly name = "PatchError";
}
