import { parseWalSegment } from "../postgres/wal-name.ts";

/**
 * Where the archive was seen to end, timeline by timeline. A marker stands for one missing segment and answers one request
 * for exactly that segment; requests of other timelines, and of history, label and partial files, neither see nor use it.
 */
export class WalEnds {
  readonly #missing = new Map<number, string>();

  /** Notes that a prefetch found a segment certainly absent. */
  note(name: string): void {
    const segment = parseWalSegment(name);
    if (!segment) return;
    const known = this.#missing.get(segment.timeline);
    if (known === undefined || name < known) this.#missing.set(segment.timeline, name);
  }

  /** Whether the request is for the noted segment; the marker is used up by it. */
  take(name: string): boolean {
    const segment = parseWalSegment(name);
    if (!segment || this.#missing.get(segment.timeline) !== name) return false;
    this.#missing.delete(segment.timeline);
    return true;
  }

  /** Forgets a marker that the archive has outgrown: the segment, or a later one, has been seen. */
  seen(name: string): void {
    const segment = parseWalSegment(name);
    const known = segment && this.#missing.get(segment.timeline);
    if (segment && known !== undefined && known <= name) this.#missing.delete(segment.timeline);
  }

  clear(): void {
    this.#missing.clear();
  }
}
