/** Gathers chunks into pieces of exactly `partBytes`, the last one shorter; a stream without bytes yields nothing. */
export async function* gatherParts(source: AsyncIterable<Uint8Array>, partBytes: number): AsyncGenerator<Uint8Array> {
  let held: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of source) {
    let rest = chunk;
    while (size + rest.length >= partBytes) {
      const taken = rest.subarray(0, partBytes - size);
      yield join([...held, taken]);
      held = [];
      size = 0;
      rest = rest.subarray(taken.length);
    }
    if (rest.length > 0) {
      held.push(rest);
      size += rest.length;
    }
  }
  if (size > 0) yield join(held);
}

/** One buffer of several; a single one is passed on without a copy. */
export function join(chunks: readonly Uint8Array[]): Uint8Array {
  const [only] = chunks;
  return chunks.length === 1 && only ? only : Buffer.concat(chunks);
}
