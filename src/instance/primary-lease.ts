import type { Lease } from "../api/generated/kubernetes.ts";
import { formatMicroTime } from "../api/micro-time.ts";
import type { LeaseReport } from "../api/pg-status.ts";
import {
  compileLeaseTimings,
  type LeaseDecision,
  type LeaseRecord,
  type LeaseTimings,
  type Primaries,
  planLease,
} from "../plan/instance/lease.ts";
import type { PromiseAnswer, PromiseRequest } from "../plan/instance/promise.ts";
import type { ReleaseNotice } from "../plan/instance/release-notice.ts";
import type { RightNote } from "../plan/instance/right-note.ts";
import type { PromiseRound, RightState, RightTimings, WriteRight } from "../plan/instance/right-to-write.ts";
import { isKubeError } from "../ports/kube-api.ts";
import { Alarm } from "./lease/alarm.ts";
import { Candidacy, type LeaseHolder, primariesOf } from "./lease/candidacy.ts";
import { giveBack } from "./lease/give-back.ts";
import { LeaseCopy } from "./lease/lease-copy.ts";
import { readRecord, renewedLease } from "./lease/lease-object.ts";
import type { AcquireResult, PrimaryLeaseOptions } from "./lease/options.ts";
import { OwnRight } from "./lease/own-right.ts";
import { Voter } from "./lease/voter.ts";

/** Pause between looks while a promotion waits for the lease. */
const eagerPollMs = 100;
/** Pause between looks of a standby, so that it knows how long the holder has been silent when it is asked to take over. */
const idlePollMs = 500;
/** A write that takes longer is given up; nobody knows then what becomes of it. */
const writeLimitMs = 3_000;
/** Pause after a failed request. */
const failurePauseMs = 1_000;

/** Holds, watches and gives back the Lease that carries the right to be primary. */
export class PrimaryLease {
  readonly #options: PrimaryLeaseOptions;
  readonly #startedAt: number;
  readonly #lostHandlers = new Set<(holder: string) => void>();
  #timings: LeaseTimings | undefined;
  #wanted = false;
  /** It is wanted only to be given back with another list of voters. */
  #relisting = false;
  #idleLook = new AbortController();
  #held = false;
  #heldBefore = false;
  /** `leaseTransitions` of the last record that was this pod's. */
  #ownTransitions: number | undefined;
  /** Grows with each release, so that a write that was under way does not bring the lease back. */
  #epoch = 0;
  #lastRefusal = "";
  /** What the Cluster said when it was decided that the Lease is wanted. */
  #wish: Primaries | undefined;
  #engaged = false;
  readonly #copy: LeaseCopy;
  readonly #right: OwnRight;
  readonly #voter: Voter;
  readonly #candidacy: Candidacy;
  readonly #alarm: Alarm;

  constructor(options: PrimaryLeaseOptions) {
    this.#options = options;
    this.#startedAt = options.clock.monotonicMs();
    this.#copy = new LeaseCopy(options);
    this.#right = new OwnRight({ ...options, timings: () => this.timings });
    this.#voter = new Voter({ ...options, cluster: `${options.namespace}/${options.clusterName}` });
    this.#candidacy = new Candidacy(options);
    this.#alarm = new Alarm(options.clock);
  }

  /** Whether the right to write is good at this moment, and for long enough to start something. */
  get held(): boolean {
    return this.#held && this.rightState.kind === "good";
  }

  get right(): WriteRight | undefined {
    return this.#right.right;
  }

  /** The record that the right at hand took the place of; `undefined` when this process did not see that. */
  get replaced(): LeaseRecord | undefined {
    const { replaced } = this.#copy;
    return replaced && replaced.transitions + 1 === this.right?.transitions ? replaced : undefined;
  }

  /** Also by a right that was adopted and not renewed since. */
  get #hasRight(): boolean {
    return this.#heldBefore && this.#right.isKnownTenure;
  }

  get rightTimings(): RightTimings {
    return this.#right.timings;
  }

  get rightState(): RightState {
    return this.#right.state;
  }

  /** Takes what the voters answered; the right gets longer when all of them granted. */
  applyRound(round: PromiseRound): void {
    this.#right.applyRound(round);
  }

  /** The right is over and PostgreSQL is down: from here on only a Lease write brings it back. */
  lapse(): void {
    this.#right.lapse();
  }

  /** Promises a holder that can't renew to leave the Lease alone, or says why not (safety protocol §1.3). */
  promise(request: PromiseRequest): PromiseAnswer {
    return this.#voter.promise(request, {
      record: this.#copy.record,
      claiming: this.#copy.claiming,
      isHolder: this.#held || this.#heldBefore,
    });
  }

  /** Takes what a holder tells of itself. */
  noteRelease(notice: ReleaseNotice): void {
    if (!this.#voter.note(notice)) return;
    this.#options.logger.info("The holder of the primary lease tells that PostgreSQL is down there", {
      holder: notice.holder,
    });
    this.#alarm.wake();
  }

  /** The Lease as this instance sees it, for those who decide about a failover. */
  report(): LeaseReport {
    const now = this.#options.clock.monotonicMs();
    const { record, unchangedMs } = this.#copy;
    const grant = this.#voter.binding(record);
    return {
      ...(record ? { holder: record.holder } : {}),
      ...(unchangedMs === undefined ? {} : { silentMs: Math.round(unchangedMs) }),
      ...(grant ? { grant: { holder: grant.holder, leftMs: Math.round(grant.until - now) } } : {}),
    };
  }

  get timings(): LeaseTimings {
    return this.#timings ?? compileLeaseTimings(this.#options.state.cluster?.spec.primaryLease);
  }

  /**
   * A primary was found running: its right came from this pod's lease, which is renewed from here on or found lost.
   * `deadlineMs` is what the launcher has left; without a deadline nobody else could take the lease. `note` is what the runtime
   * before kept of its right.
   */
  adoptPrimary(deadlineMs?: number, note?: RightNote): void {
    if (note) this.#timings ??= note.timings;
    this.#heldBefore = true;
    this.#wanted = true;
    this.#right.adopt(deadlineMs, note?.ground);
    this.#alarm.wake();
  }

  /**
   * Whom the Lease names: this very pod, a former pod of its name, another instance or nobody; `undefined` when
   * that could not be read.
   */
  async readHolder(signal: AbortSignal): Promise<LeaseHolder | undefined> {
    if (this.held) return "me";
    const { logger } = this.#options;
    try {
      return this.#candidacy.holder(readRecord(await this.#copy.peek(signal)));
    } catch (error) {
      logger.warning("The holder of the primary lease is not known", { error });
      return undefined;
    }
  }

  /** Calls back when another instance took the lease that this process held. */
  onLost(handler: (holder: string) => void): void {
    this.#lostHandlers.add(handler);
  }

  /** Watches and renews until the signal comes. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const pauseMs = await this.#step(signal);
      await this.#alarm.sleep(pauseMs, signal);
    }
  }

  /**
   * Waits until the lease is held; its timings are fixed from the first call on. Without success it is not wanted any more. `wish`:
   * what the role was decided from, so that it is refused when the Cluster says something else by then.
   */
  async acquire(
    signal: AbortSignal,
    wish: Primaries = primariesOf(this.#options.state.cluster),
  ): Promise<AcquireResult> {
    this.#wish = wish;
    const result = await this.#acquire(signal);
    // A lapsed lease goes on being renewed: only another holder ends that.
    if (result.kind !== "held" && !this.#held) this.#wanted = false;
    return result;
  }

  async #acquire(signal: AbortSignal): Promise<AcquireResult> {
    this.#timings ??= compileLeaseTimings(this.#options.state.cluster?.spec.primaryLease);
    // A look that is under way for curiosity's sake must not hold up the one that counts.
    if (!this.#wanted) this.#idleLook.abort();
    this.#wanted = true;
    this.#relisting = false;
    if (this.held) return { kind: "held" };
    this.#lastRefusal = "";
    const limitMs = this.timings.leaseDurationMs + 3 * this.timings.retryPeriodMs;
    const end = this.#options.clock.monotonicMs() + limitMs;
    this.#alarm.wake();
    while (!signal.aborted && !this.held) {
      if (this.#lastRefusal) return { kind: "refused", reason: this.#lastRefusal };
      const restMs = end - this.#options.clock.monotonicMs();
      if (restMs <= 0) return { kind: "timeout", reason: `not acquired within ${limitMs / 1000} s` };
      await this.#alarm.nextChange(Math.min(restMs, 1_000), signal);
    }
    return this.held ? { kind: "held" } : { kind: "timeout", reason: "stopped" };
  }

  /** Gives the lease back, with the last checkpoint of an orderly stop; only when PostgreSQL is down. Never fails: it may expire. */
  async release(walEnd?: string): Promise<void> {
    this.#wanted = false;
    this.#relisting = false;
    this.#epoch += 1;
    this.#right.giveUp();
    if (this.#heldBefore) {
      this.#held = false;
      this.#heldBefore = false;
      await this.#giveBack(walEnd);
    }
    // The next tenure goes by what the Cluster says then.
    if (!this.#wanted && !this.#heldBefore) this.#timings = undefined;
    await this.#tellEngaged();
  }

  /**
   * Gives back what an earlier runtime of this pod held, when every process that it left has SIGKILL pending: on a dead disk
   * they may never be seen to end, but none of them gets to run any more.
   */
  async releaseKilled(): Promise<void> {
    this.#right.giveUp();
    await this.#giveBack();
  }

  #giveBack(walEnd?: string): Promise<void> {
    return giveBack(
      { ...this.#options, candidacy: this.#candidacy },
      {
        lease: this.#copy.lease,
        record: this.#copy.record,
        attempted: this.#copy.attempted,
        releasedDurationSeconds: this.timings.releasedDurationSeconds,
        walEnd,
        released: (record) => this.#notice(record),
      },
    );
  }

  /** One look, or one write; gives the pause before the next. */
  async #step(signal: AbortSignal): Promise<number> {
    const { clock, logger } = this.#options;
    this.#idleLook = new AbortController();
    await this.#tellEngaged();
    const look = this.#wanted ? signal : AbortSignal.any([signal, this.#idleLook.signal]);
    try {
      const known = this.#held ? this.#copy.lease : undefined;
      const record = this.#notice(readRecord(known ?? (await this.#copy.read(look))));
      if (!this.#wanted && !this.#held && !this.#heldBefore) return idlePollMs;
      return await this.#act(this.#decide(record), record, signal);
    } catch (error) {
      if (signal.aborted || this.#idleLook.signal.aborted) return 0;
      // Whatever happened, the copy may be outdated.
      const conflict = isKubeError(error, "conflict");
      this.#copy.forget();
      if (this.#held && !conflict) {
        const silentMs = clock.monotonicMs() - (this.right?.basis ?? this.#startedAt);
        logger.warning("Could not renew the primary lease", { error, rightAgeMs: Math.round(silentMs) });
      } else if (!conflict) {
        logger.debug("Could not read the primary lease", { error });
      }
      return conflict ? 20 : Math.max(failurePauseMs, this.timings.retryPeriodMs);
    }
  }

  async #tellEngaged(): Promise<void> {
    const isEngaged = this.#wanted || this.#held || this.#heldBefore;
    if (isEngaged === this.#engaged) return;
    this.#engaged = isEngaged;
    await this.#options.onEngaged?.(isEngaged);
  }

  #notice(record: LeaseRecord): LeaseRecord {
    this.#copy.notice(record);
    if (this.#heldBefore && this.#candidacy.isOwn(record)) this.#ownTransitions = record.transitions;
    return record;
  }

  #decide(record: LeaseRecord): LeaseDecision {
    const { podName, podUid, state } = this.#options;
    return planLease({
      me: podName,
      myUid: podUid,
      record,
      heldBefore: this.#heldBefore,
      ownTransitions: this.#ownTransitions,
      unchangedMs: this.#copy.unchangedMs ?? 0,
      rightHeld: this.#hasRight,
      leaseDurationMs: this.timings.leaseDurationMs,
      currentPrimary: state.cluster?.status?.currentPrimary ?? "",
      clusterOfOne: this.#candidacy.isClusterOfOne,
      promisedMs: this.#voter.promisedMs(record),
      toldReleased: this.#voter.isReleased(record),
      named: this.#candidacy.isNamed(record),
    });
  }

  async #act(decision: LeaseDecision, record: LeaseRecord, signal: AbortSignal): Promise<number> {
    switch (decision.kind) {
      case "renew":
      case "claim":
        // Whether a lease without history may be claimed is told by the Cluster, which an adopted primary may not know yet.
        if (decision.kind === "claim" && !(this.#options.state.cluster && (this.#wanted || this.#held)))
          return idlePollMs;
        if (decision.kind === "claim" && !(await this.#mayClaim(record, signal))) return failurePauseMs;
        await this.#write(decision, record, signal);
        return this.timings.retryPeriodMs;
      case "wait":
        this.#copy.forget();
        return Math.max(10, Math.min(eagerPollMs, decision.afterMs));
      case "refuse":
        // Also who holds it by its own account has to look again: somebody may have changed the record since.
        this.#copy.forget();
        this.#lastRefusal = decision.reason;
        this.#alarm.changed();
        return idlePollMs;
      case "lost":
        this.#held = false;
        this.#heldBefore = false;
        this.#wanted = false;
        this.#ownTransitions = undefined;
        this.#right.lose();
        this.#options.logger.error("Another instance took the primary lease", {
          holder: decision.holder || "released",
        });
        for (const handler of this.#lostHandlers) handler(decision.holder);
        this.#alarm.changed();
        return idlePollMs;
      default: {
        const never: never = decision;
        throw new Error(`unknown decision ${JSON.stringify(never)}`);
      }
    }
  }

  /** Whose right has not ended was the last primary, whatever a Cluster says. */
  async #mayClaim(record: LeaseRecord, signal: AbortSignal): Promise<boolean> {
    if (this.#hasRight) return true;
    const wish = this.#wish ?? primariesOf(this.#options.state.cluster);
    const obstacle = await this.#candidacy.obstacle(record, wish, signal);
    if (obstacle === undefined) return true;
    this.#copy.forget();
    this.#lastRefusal = obstacle;
    this.#alarm.changed();
    return false;
  }

  async #write(
    decision: { kind: "renew" } | { kind: "claim"; reason: string },
    record: LeaseRecord,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, logger, podName, podUid } = this.#options;
    const { leaseDurationMs: durationMs, renewDeadlineMs } = this.timings;
    const startedAt = clock.monotonicMs();
    const epoch = this.#epoch;
    const isClaim = decision.kind === "claim";
    const voters = this.#candidacy.voters(record);
    const transitions = record.transitions + (isClaim ? 1 : 0);
    await this.#right.beginWrite({ startedAt, voters });
    // It was given up meanwhile, and told of without this write.
    if (epoch !== this.#epoch) return;
    const now = formatMicroTime(clock.now());
    const renewal = { holder: podName, holderUID: podUid, voters, transitions, durationMs, isClaim, now };
    const limit = AbortSignal.timeout(Math.min(writeLimitMs, renewDeadlineMs / 2));
    const lease = renewedLease(this.#copy.lease as Lease, renewal);
    const written = await this.#copy.write(lease, AbortSignal.any([signal, limit]));
    if (isClaim && this.#relisting) {
      this.#relisting = false;
      this.#wanted = false;
    }
    if (epoch !== this.#epoch || (isClaim && !this.#wanted && !this.#held)) {
      // Nobody waits for it any more; kept, it would keep everyone else from being primary.
      if (isClaim) await this.#giveBack();
      return;
    }
    this.#notice(written);
    this.#right.proved({ startedAt, voters, transitions });
    this.#heldBefore = true;
    this.#ownTransitions = transitions;
    if (!this.#held) {
      this.#held = true;
      logger.info("Acquired the primary lease", {
        reason: isClaim ? decision.reason : "still held by this pod",
        voters,
      });
    }
    this.#alarm.changed();
  }

  /** Gives the lease up when it is held or waited for and not needed; call it only while no PostgreSQL runs as primary. */
  async standDown(): Promise<void> {
    const { record } = this.#copy;
    // An earlier container of this pod may have ended before it could give the Lease back.
    if (record && this.#candidacy.isOwn(record)) this.#heldBefore = true;
    if (this.#held || this.#heldBefore) return this.release();
    const duty = record && this.#candidacy.duty(record);
    if (duty) {
      // Once it is held, it is given back with the successor on the list, or with another list.
      if (duty === "relist") this.#relisting = true;
      this.#wish = primariesOf(this.#options.state.cluster);
      this.#wanted = true;
      this.#alarm.wake();
    } else if (this.#wanted) {
      await this.release();
    }
  }
}
