import { viewOf } from "./find-matches.ts";

/** What is handed on at once, about: each time is a turn through all who pass it on. */
const batchBytes = 512 * 1024;

/** Where a decoder writes its blocks one behind the other, so that a block may repeat what the ones before it hold. */
export class BlockOutput {
  bytes: Uint8Array = new Uint8Array();
  view: DataView = viewOf(this.bytes);
  /** Where the next block begins. */
  at = 0;
  readonly #historyBytes: number;
  #taken = 0;

  /** `historyBytes`: how far back a block may repeat. */
  constructor(historyBytes = 0) {
    this.#historyBytes = historyBytes;
  }

  /** Makes room for a block; returns what is full before that. */
  reserve(blockBytes: number): Uint8Array | undefined {
    if (this.bytes.length - this.at >= blockBytes) return undefined;
    const full = this.rest();
    const history = this.bytes.subarray(Math.max(0, this.at - this.#historyBytes), this.at);
    const fresh = Buffer.allocUnsafeSlow(history.length + Math.max(blockBytes, batchBytes));
    fresh.set(history);
    this.bytes = fresh;
    this.view = viewOf(fresh);
    this.at = history.length;
    this.#taken = history.length;
    return full;
  }

  /** What nobody has taken yet. */
  rest(): Uint8Array | undefined {
    const rest = this.bytes.subarray(this.#taken, this.at);
    this.#taken = this.at;
    return rest.length > 0 ? rest : undefined;
  }
}
