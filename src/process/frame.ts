/** Largest body of a frame; a longer one ends the channel (ADR 0001). */
export const maxFrameBytes = 1024 * 1024;

/** Encodes fields as one frame: four bytes of length, then the fields joined by NUL. */
export function encodeFrame(fields: readonly string[]): Buffer {
  const body = Buffer.from(fields.join("\0"), "utf8");
  if (body.length > maxFrameBytes) throw new Error(`frame of ${body.length} bytes is longer than ${maxFrameBytes}`);
  const frame = Buffer.allocUnsafe(4 + body.length);
  frame.writeUInt32BE(body.length, 0);
  body.copy(frame, 4);
  return frame;
}

/** Cuts a byte stream into frames, whatever the chunk borders. */
export class FrameReader {
  #pending: Buffer = Buffer.alloc(0);

  /** Takes the next bytes and gives the frames they complete; throws on a frame that is too long. */
  push(chunk: Uint8Array): string[][] {
    this.#pending = this.#pending.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#pending, chunk]);
    const frames: string[][] = [];
    for (;;) {
      if (this.#pending.length < 4) return frames;
      const length = this.#pending.readUInt32BE(0);
      if (length > maxFrameBytes) throw new Error(`frame of ${length} bytes is longer than ${maxFrameBytes}`);
      if (this.#pending.length < 4 + length) return frames;
      frames.push(
        this.#pending
          .subarray(4, 4 + length)
          .toString("utf8")
          .split("\0"),
      );
      this.#pending = this.#pending.subarray(4 + length);
    }
  }
}
