import type { LeaseTimings } from "../../plan/instance/lease.ts";
import { formatRightNote } from "../../plan/instance/right-note.ts";
import { votersToAsk, type WriteRight } from "../../plan/instance/right-to-write.ts";
import type { PostmasterHost } from "../../ports/postmaster-host.ts";
import type { PeerAddress } from "./promise-client.ts";

export interface RightMemoryOptions {
  host: Pick<PostmasterHost, "keep">;
  podName: string;
  timings: () => LeaseTimings;
  addressOf: (voter: string) => PeerAddress | undefined;
}

/** Has the launcher keep what the next runtime needs to ask for promises in place of this one. */
export class RightMemory {
  readonly #options: RightMemoryOptions;
  #sent: string | undefined;
  #kept: Promise<void> = Promise.resolve();

  constructor(options: RightMemoryOptions) {
    this.#options = options;
  }

  /** Resolves once the launcher knows of this right, or that there is none. */
  remember(right: WriteRight | undefined): Promise<void> {
    const text = right ? this.#note(right) : "";
    if (text === this.#sent) return this.#kept;
    this.#sent = text;
    this.#kept = this.#options.host.keep(text);
    this.#kept.catch(() => {
      if (this.#sent === text) this.#sent = undefined;
    });
    return this.#kept;
  }

  #note(right: WriteRight): string {
    const { podName, timings, addressOf } = this.#options;
    const peers: Record<string, PeerAddress> = {};
    for (const voter of votersToAsk(right, podName)) {
      const address = addressOf(voter);
      if (address) peers[voter] = address;
    }
    return formatRightNote({ ground: right, timings: timings(), peers });
  }
}
