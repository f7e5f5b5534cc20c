export interface LineStreamOptions {
  onLine(line: string): void;
  /** A line that was longer than allowed and is lost, with its size in bytes. */
  onTooLong(bytes: number): void;
  /** Longest line, in bytes. @default 1 MiB */
  maxLineBytes?: number;
}

const newline = 0x0a;

/** Cuts a byte stream into lines. */
export class LineStream {
  readonly #options: LineStreamOptions;
  readonly #maxBytes: number;
  #parts: Buffer[] = [];
  #bytes = 0;

  constructor(options: LineStreamOptions) {
    this.#options = options;
    this.#maxBytes = options.maxLineBytes ?? 1024 * 1024;
  }

  /** Takes the next bytes of the stream, cut anywhere. */
  push(chunk: Buffer): void {
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(newline, start);
      if (end === -1) break;
      this.#add(chunk.subarray(start, end));
      this.#endLine();
      start = end + 1;
    }
    if (start < chunk.length) this.#add(Buffer.from(chunk.subarray(start)));
  }

  /** Gives out what follows the last newline; for the end of a stream. */
  flush(): void {
    if (this.#bytes > 0) this.#endLine();
  }

  #add(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes <= this.#maxBytes) this.#parts.push(part);
    else this.#parts = [];
  }

  #endLine(): void {
    if (this.#bytes > this.#maxBytes) this.#options.onTooLong(this.#bytes);
    else this.#options.onLine(Buffer.concat(this.#parts).toString("utf8").replace(/\r$/, ""));
    this.#parts = [];
    this.#bytes = 0;
  }
}
