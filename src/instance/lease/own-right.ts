import type { LeaseTimings } from "../../plan/instance/lease.ts";
import {
  adoptedRight,
  compileRightTimings,
  isKnownTenure,
  type PromiseRound,
  type RightGround,
  type RightState,
  type RightTimings,
  rightAfterRound,
  rightAfterWrite,
  rightWhileWriting,
  stateOfRight,
  type WriteRight,
} from "../../plan/instance/right-to-write.ts";
import type { PrimaryLeaseOptions } from "./options.ts";

type OwnRightOptions = Pick<PrimaryLeaseOptions, "clock" | "podName" | "onRight"> & { timings: () => LeaseTimings };

/** The right to write as this instance has it, whether the Lease or promises prove it. */
export class OwnRight {
  readonly #options: OwnRightOptions;
  #right: WriteRight | undefined;

  constructor(options: OwnRightOptions) {
    this.#options = options;
  }

  get right(): WriteRight | undefined {
    return this.#right;
  }

  get timings(): RightTimings {
    return compileRightTimings(this.#options.timings());
  }

  get #view(): { me: string; now: number; timings: RightTimings } {
    const { podName, clock } = this.#options;
    return { me: podName, now: clock.monotonicMs(), timings: this.timings };
  }

  get state(): RightState {
    return stateOfRight(this.#right, this.#view);
  }

  get isKnownTenure(): boolean {
    return isKnownTenure(this.#right, this.#view);
  }

  /** Takes what the voters answered; the right gets longer when all of them granted. */
  applyRound(round: PromiseRound): void {
    const next = rightAfterRound(this.#right, round, this.#view);
    if (next && next !== this.#right) this.#setAndGoOn(next);
  }

  /** A Lease write is about to be sent, and its outcome may stay unknown; send it only once this has resolved. */
  async beginWrite(write: { startedAt: number; voters: readonly string[] }): Promise<void> {
    const during = rightWhileWriting(this.#right, { me: this.#options.podName, ...write });
    if (during) await this.#set(during);
  }

  /** A Lease write succeeded. */
  proved(write: { startedAt: number; voters: readonly string[]; transitions: number }): void {
    this.#setAndGoOn(rightAfterWrite(write));
  }

  /** Takes over what an earlier runtime left, told by what the launcher's deadline has left and by what it kept. */
  adopt(deadlineMs: number | undefined, ground: RightGround | undefined): void {
    this.#right = adoptedRight({ ...this.#view, deadlineMs, ground });
  }

  /** The right is over and PostgreSQL is down: from here on only a Lease write brings it back. */
  lapse(): void {
    if (this.state.kind !== "good") this.#right = undefined;
  }

  /** Another one has it; the launcher's deadline stays until PostgreSQL is down. */
  lose(): void {
    this.#right = undefined;
  }

  /** It is given back, PostgreSQL is down. */
  giveUp(): void {
    this.#right = undefined;
    this.#options.onRight?.(undefined).catch(() => undefined);
  }

  /** Nothing waits for who is told: what the right allows was allowed before, or is sent after this on the same way. */
  #setAndGoOn(right: WriteRight): void {
    this.#set(right).catch(() => undefined);
  }

  async #set(right: WriteRight): Promise<void> {
    this.#right = right;
    await this.#options.onRight?.(right);
  }
}
