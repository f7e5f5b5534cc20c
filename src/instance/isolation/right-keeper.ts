import { isGranted, type PromiseRequest } from "../../plan/instance/promise.ts";
import { deadlineOfRight, votersToAsk, type WriteRight, wantsRound } from "../../plan/instance/right-to-write.ts";
import type { Clock, Random } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import type { PostmasterHost } from "../../ports/postmaster-host.ts";
import type { Lifecycle } from "../lifecycle.ts";
import type { PrimaryLease } from "../primary-lease.ts";

/** Pause between looks at the right. */
const lookMs = 100;
/** Shortest time between the starts of two rounds. */
const roundPauseMs = 500;

export interface RightKeeperOptions {
  lease: PrimaryLease;
  lifecycle: Pick<Lifecycle, "stop">;
  host: Pick<PostmasterHost, "setDeadline">;
  /** Must count suspended time too. */
  clock: Clock;
  random: Random;
  logger: Logger;
  podName: string;
  podUid: string;
  /** Namespace and name of the cluster. */
  cluster: string;
  /** Whether a primary without its right is to be stopped: a user may have said no (`isolationCheck.enabled: false`). */
  isEnforced: () => boolean;
  isRunning: () => boolean;
  ask: (question: PromiseRequest, signal: AbortSignal) => Promise<unknown>;
  /** PostgreSQL was stopped here. */
  wake: () => void;
}

/**
 * Sees to it that nobody writes without the right (safety protocol §1.2, §1.5): asks the voters when the Lease can't be
 * renewed, stops PostgreSQL in time, and has the launcher kill what is left.
 */
export class RightKeeper {
  readonly #options: RightKeeperOptions;
  #asking = false;
  #askedAt = Number.NEGATIVE_INFINITY;
  #stopping = false;
  /** How the last round went; told when that changes. */
  #lastRound: "none" | "granted" | "refused" = "none";

  constructor(options: RightKeeperOptions) {
    this.#options = options;
  }

  /** Moves the launcher's deadline with the right; without a right there is nothing to end. */
  readonly follow = (right: WriteRight | undefined): void => {
    const { host, isEnforced, podName, clock, lease } = this.#options;
    const view = { me: podName, now: clock.monotonicMs(), timings: lease.rightTimings };
    host.setDeadline(isEnforced() ? (deadlineOfRight(right, view) ?? 0) : 0);
  };

  /** Milliseconds until the launcher's deadline for the right as it is; `undefined` = there is none. */
  deadlineMs(): number | undefined {
    const { lease, podName, clock, isEnforced } = this.#options;
    if (!isEnforced()) return undefined;
    return deadlineOfRight(lease.right, { me: podName, now: clock.monotonicMs(), timings: lease.rightTimings });
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#look(signal);
      await this.#options.clock.sleep(lookMs, signal).catch(() => undefined);
    }
  }

  #look(signal: AbortSignal): void {
    const { lease, clock, podName, isEnforced } = this.#options;
    const { right, rightState } = lease;
    if (!right || !isEnforced()) return;
    const now = clock.monotonicMs();
    const due = now - this.#askedAt >= roundPauseMs && !this.#asking;
    if (due && wantsRound(right, { me: podName, now, timings: lease.rightTimings })) void this.#round(right, signal);
    if (rightState.kind !== "good" && !this.#stopping) void this.#stop();
  }

  async #round(right: WriteRight, signal: AbortSignal): Promise<void> {
    const { lease, clock, podName } = this.#options;
    this.#asking = true;
    const startedAt = clock.monotonicMs();
    this.#askedAt = startedAt;
    try {
      const limit = new AbortController();
      const voters = votersToAsk(right, podName);
      const asked = Promise.all(voters.map((voter) => this.#isGrantedBy(voter, right, limit.signal)));
      const timeout = clock.sleep(lease.rightTimings.roundLimitMs, AbortSignal.any([signal, limit.signal]));
      const granted = await Promise.race([asked, timeout.then(() => undefined).catch(() => undefined)]);
      limit.abort();
      const answers = granted ?? [];
      const grantedBy = voters.filter((_, index) => answers[index] === true);
      lease.applyRound({ startedAt, transitions: right.transitions, grantedBy });
      this.#tell(voters, grantedBy);
    } finally {
      this.#asking = false;
    }
  }

  async #isGrantedBy(voter: string, right: WriteRight, signal: AbortSignal): Promise<boolean> {
    const { ask, lease, random, podName, podUid, cluster } = this.#options;
    const question: PromiseRequest = {
      cluster,
      voter,
      holder: podName,
      holderUID: podUid,
      transitions: right.transitions,
      durationMs: lease.timings.leaseDurationMs,
      nonce: Buffer.from(random.bytes(16)).toString("hex"),
    };
    return ask(question, signal).then(
      (answer) => isGranted(question, answer),
      () => false,
    );
  }

  #tell(voters: readonly string[], grantedBy: readonly string[]): void {
    const outcome = grantedBy.length === voters.length ? "granted" : "refused";
    if (outcome === this.#lastRound) return;
    this.#lastRound = outcome;
    const fields = { granted: grantedBy, missing: voters.filter((name) => !grantedBy.includes(name)) };
    const { logger } = this.#options;
    if (outcome === "granted")
      logger.info("The primary lease can't be renewed; every voter promised to leave it alone", fields);
    else logger.warning("The primary lease can't be renewed and not every voter promised to leave it alone", fields);
  }

  async #stop(): Promise<void> {
    const { lease, lifecycle, host, isRunning, logger, wake } = this.#options;
    this.#stopping = true;
    try {
      if (isRunning()) logger.error("The right to write ends: neither the Lease nor the voters prove it any longer");
      await lifecycle.stop("leaseLost");
      if (isRunning() || lease.rightState.kind === "good") return;
      lease.lapse();
      host.setDeadline(0);
      wake();
    } catch (error) {
      // The launcher's deadline stands.
      logger.error("PostgreSQL could not be stopped", { error });
    } finally {
      this.#stopping = false;
    }
  }
}
