const newline = 0x0a;

/**
 * Cuts a stream of bytes into lines. Cutting happens on bytes, before decoding, because a chunk may end inside a character;
 * a newline byte never is part of another character in UTF-8. A rest without newline at the end is reported as `truncated`.
 */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array>,
  onData?: () => void,
): AsyncGenerator<{ text: string; truncated: boolean }, void, void> {
  let pending: Uint8Array[] = [];
  for await (const chunk of chunks) {
    onData?.();
    let start = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      pending.push(chunk.subarray(start, end));
      const text = decode(pending);
      pending = [];
      start = end + 1;
      if (text.trim()) yield { text, truncated: false };
    }
    if (start < chunk.length) pending.push(chunk.subarray(start));
  }
  if (pending.length > 0) yield { text: decode(pending), truncated: true };
}

function decode(parts: Uint8Array[]): string {
  return Buffer.concat(parts).toString("utf8");
}
