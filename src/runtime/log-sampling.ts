/** Records of equal level and text that are written each second before they are thinned out. */
const first = 100;
/** After them, one of so many is written. */
const thereafter = 100;
const tickMs = 1_000;
/** Texts are constants, so that there are few; this bounds those of a part that breaks the rule. */
const mostTexts = 1_000;

/** Decides which records of a flood are written (reference: instance manager §8). */
export class LogSampler {
  readonly #seen = new Map<string, { until: number; count: number }>();

  /** Whether the next record of this level and text is written; `now` on a clock that only goes forward, in milliseconds. */
  admits(level: string, message: string, now: number): boolean {
    const key = `${level} ${message}`;
    const seen = this.#seen.get(key);
    if (!seen || now >= seen.until) {
      if (!seen && this.#seen.size >= mostTexts) this.#forget(now);
      this.#seen.set(key, { until: now + tickMs, count: 1 });
      return true;
    }
    seen.count += 1;
    return seen.count <= first || (seen.count - first) % thereafter === 0;
  }

  #forget(now: number): void {
    for (const [key, { until }] of this.#seen) if (now >= until) this.#seen.delete(key);
    // All of them within one second: starting over writes a record too much, never one too few.
    if (this.#seen.size >= mostTexts) this.#seen.clear();
  }
}
