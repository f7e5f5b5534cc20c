import type { Clock } from "../../ports/clock.ts";

/** Passes a stream on at no more than so many bytes a second. */
export async function* pace(
  stream: AsyncIterable<Uint8Array>,
  bytesPerSecond: number,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const start = clock.monotonicMs();
  let passed = 0;
  for await (const chunk of stream) {
    passed += chunk.length;
    const ahead = (passed * 1000) / bytesPerSecond - (clock.monotonicMs() - start);
    if (ahead > 1) await clock.sleep(ahead, signal);
    yield chunk;
  }
}
