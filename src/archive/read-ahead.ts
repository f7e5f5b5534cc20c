/** Reads a stream ahead of its taker, so that both work at the same time; `count` chunks wait at most. */
export async function* readAhead<T>(source: AsyncIterable<T>, count: number): AsyncGenerator<T> {
  const chunks = source[Symbol.asyncIterator]();
  const asked: Promise<IteratorResult<T>>[] = [];
  const ask = () => {
    const next = chunks.next();
    // Awaited below, in order; until then a failure must not count as unhandled.
    next.catch(() => undefined);
    asked.push(next);
  };
  try {
    for (let at = 0; at < count; at++) ask();
    for (let next = asked.shift(); next; next = asked.shift()) {
      const { done, value } = await next;
      if (done) return;
      ask();
      yield value;
    }
  } finally {
    await chunks.return?.(undefined);
  }
}
