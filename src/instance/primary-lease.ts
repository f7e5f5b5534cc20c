import type { Lease } from "../api/generated/kubernetes.ts";
import { annotations } from "../api/labels.ts";
import { formatLeaseVoters, parseLeaseVoters } from "../api/lease-voters.ts";
import { formatMicroTime } from "../api/micro-time.ts";
import { resources } from "../kube/resources.ts";
import {
  compileLeaseTimings,
  isOwnLease,
  type LeaseDecision,
  type LeaseRecord,
  type LeaseTimings,
  planLease,
  planVoters,
} from "../plan/instance/lease.ts";
import type { Clock } from "../ports/clock.ts";
import { isKubeError, type KubeApi } from "../ports/kube-api.ts";
import type { Logger } from "../ports/logger.ts";
import type { InstanceState } from "./instance-state.ts";

/** Pause between looks while a promotion waits for the lease. */
const eagerPollMs = 100;
/** Pause between looks of a standby, so that it knows how long the holder has been silent when it is asked to take over. */
const idlePollMs = 500;
/** A read that takes longer is given up and repeated. */
const readLimitMs = 1_500;
/** Pause after a failed request. */
const failurePauseMs = 1_000;

export interface PrimaryLeaseOptions {
  kube: KubeApi;
  /** Must count suspended time too. */
  clock: Clock;
  logger: Logger;
  state: InstanceState;
  podName: string;
  podUid: string;
  namespace: string;
  clusterName: string;
}

/** `former`: an earlier pod of the own name. */
export type LeaseHolder = "me" | "former" | "other" | "nobody";

export type AcquireResult =
  | { kind: "held" }
  | { kind: "refused"; reason: string }
  | { kind: "timeout"; reason: string };

function readRecord(lease: Lease): LeaseRecord {
  return {
    holder: lease.spec?.holderIdentity ?? "",
    renewTime: lease.spec?.renewTime ?? "",
    transitions: lease.spec?.leaseTransitions ?? 0,
    durationSeconds: lease.spec?.leaseDurationSeconds ?? 0,
    voters: parseLeaseVoters(lease),
  };
}

/** Holds, watches and gives back the Lease that carries the right to be primary. */
export class PrimaryLease {
  readonly #options: PrimaryLeaseOptions;
  readonly #startedAt: number;
  readonly #lostHandlers = new Set<(holder: string) => void>();
  #timings: LeaseTimings | undefined;
  /** The Lease as last read or written. */
  #lease: Lease | undefined;
  /** When holder and renew time were first seen as they are now. */
  #seen: { key: string; at: number } | undefined;
  #wanted = false;
  #idleLook = new AbortController();
  #held = false;
  #heldBefore = false;
  /** `leaseTransitions` of the last record that was this pod's. */
  #ownTransitions: number | undefined;
  /** Grows with each release, so that a write that was under way does not bring the lease back. */
  #epoch = 0;
  /** Start of the last write that succeeded: the right to write counts from there. */
  #renewedAt = Number.NEGATIVE_INFINITY;
  #lastRefusal = "";
  #wake: (() => void) | undefined;
  #waiters = new Set<() => void>();

  constructor(options: PrimaryLeaseOptions) {
    this.#options = options;
    this.#startedAt = options.clock.monotonicMs();
  }

  /** Whether the right to write is good at this moment. */
  get held(): boolean {
    return this.#held && this.#options.clock.monotonicMs() - this.#renewedAt < this.timings.renewDeadlineMs;
  }

  get timings(): LeaseTimings {
    return this.#timings ?? compileLeaseTimings(this.#options.state.cluster?.spec.primaryLease);
  }

  /** A primary was found running: its right came from this pod's lease, which is renewed from here on or found lost. */
  adoptPrimary(): void {
    this.#heldBefore = true;
    this.#wanted = true;
    this.#wake?.();
  }

  /**
   * Whom the Lease names: this very pod, a former pod of its name, another instance or nobody; `undefined` when
   * that could not be read.
   */
  async readHolder(signal: AbortSignal): Promise<LeaseHolder | undefined> {
    if (this.held) return "me";
    const { kube, namespace, clusterName, podName, logger } = this.#options;
    try {
      const lease = await kube.get(
        resources.leases,
        { namespace, name: clusterName },
        { timeoutMs: readLimitMs, signal },
      );
      if (this.#isOwn(lease)) return "me";
      const { holder } = readRecord(lease);
      if (holder === "") return "nobody";
      return holder === podName ? "former" : "other";
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
      await this.#sleep(pauseMs, signal);
    }
  }

  /** Waits until the lease is held; its timings are fixed from the first call on. Without success it is not wanted any more. */
  async acquire(signal: AbortSignal): Promise<AcquireResult> {
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
    if (this.held) return { kind: "held" };
    this.#lastRefusal = "";
    const limitMs = this.timings.leaseDurationMs + 3 * this.timings.retryPeriodMs;
    const end = this.#options.clock.monotonicMs() + limitMs;
    this.#wake?.();
    while (!signal.aborted && !this.held) {
      if (this.#lastRefusal) return { kind: "refused", reason: this.#lastRefusal };
      const restMs = end - this.#options.clock.monotonicMs();
      if (restMs <= 0) return { kind: "timeout", reason: `not acquired within ${limitMs / 1000} s` };
      await this.#nextChange(Math.min(restMs, 1_000), signal);
    }
    return this.held ? { kind: "held" } : { kind: "timeout", reason: "stopped" };
  }

  /** Gives the lease back; call it only when PostgreSQL is down. Never fails: what can't be told expires by itself. */
  async release(): Promise<void> {
    this.#wanted = false;
    this.#epoch += 1;
    if (!this.#heldBefore) return;
    this.#held = false;
    this.#heldBefore = false;
    await this.#giveBack();
  }

  async #giveBack(): Promise<void> {
    const { logger, namespace, clusterName } = this.#options;
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      try {
        const lease =
          attempt === 1 && this.#lease
            ? this.#lease
            : await this.#options.kube.get(resources.leases, { namespace, name: clusterName }, { timeoutMs: 2_000 });
        if (!this.#isOwn(lease)) return;
        const spec = { ...lease.spec, leaseDurationSeconds: this.timings.releasedDurationSeconds };
        spec.holderIdentity = "";
        spec.renewTime = formatMicroTime(this.#options.clock.now());
        await this.#options.kube.update(resources.leases, { ...lease, spec }, { signal: AbortSignal.timeout(3_000) });
        logger.info("Released the primary lease");
        return;
      } catch (error) {
        logger.warning("Could not release the primary lease", { error, attempt });
        if (isKubeError(error, "unavailable") && attempt > 1) return;
      }
    }
  }

  #isOwn(lease: Lease): boolean {
    return this.#isOwnRecord(readRecord(lease));
  }

  #isOwnRecord(record: LeaseRecord): boolean {
    const { podName, podUid, state } = this.#options;
    return isOwnLease({ me: podName, myUid: podUid, record, clusterOfOne: state.cluster?.spec.instances === 1 });
  }

  /** One look, or one write; gives the pause before the next. */
  async #step(signal: AbortSignal): Promise<number> {
    const { kube, clock, logger, namespace, clusterName } = this.#options;
    this.#idleLook = new AbortController();
    const look = this.#wanted ? signal : AbortSignal.any([signal, this.#idleLook.signal]);
    try {
      if (!this.#held || !this.#lease) {
        const key = { namespace, name: clusterName };
        this.#lease = await kube.get(resources.leases, key, { timeoutMs: readLimitMs, signal: look });
      }
      const record = this.#notice(readRecord(this.#lease));
      if (!this.#wanted && !this.#held && !this.#heldBefore) return idlePollMs;
      return await this.#act(this.#decide(record), signal);
    } catch (error) {
      if (signal.aborted || this.#idleLook.signal.aborted) return 0;
      // Whatever happened, the copy may be outdated.
      const conflict = isKubeError(error, "conflict");
      this.#lease = undefined;
      if (this.#held && !conflict) {
        const silentMs = clock.monotonicMs() - this.#renewedAt;
        logger.warning("Could not renew the primary lease", { error, silentMs: Math.round(silentMs) });
      } else if (!conflict) {
        logger.debug("Could not read the primary lease", { error });
      }
      return conflict ? 20 : Math.max(failurePauseMs, this.timings.retryPeriodMs);
    }
  }

  #notice(record: LeaseRecord): LeaseRecord {
    const key = JSON.stringify([record.holder, record.renewTime, record.voters?.holderUID ?? ""]);
    if (this.#seen?.key !== key) this.#seen = { key, at: this.#options.clock.monotonicMs() };
    if (this.#heldBefore && this.#isOwnRecord(record)) this.#ownTransitions = record.transitions;
    return record;
  }

  #decide(record: LeaseRecord): LeaseDecision {
    const { clock, podName, podUid, state } = this.#options;
    const now = clock.monotonicMs();
    return planLease({
      me: podName,
      myUid: podUid,
      record,
      heldBefore: this.#heldBefore,
      ownTransitions: this.#ownTransitions,
      unchangedMs: now - (this.#seen?.at ?? now),
      upMs: now - this.#startedAt,
      leaseDurationMs: this.timings.leaseDurationMs,
      currentPrimary: state.cluster?.status?.currentPrimary ?? "",
      clusterOfOne: state.cluster?.spec.instances === 1,
    });
  }

  async #act(decision: LeaseDecision, signal: AbortSignal): Promise<number> {
    switch (decision.kind) {
      case "renew":
      case "claim":
        // Whether a lease without history may be claimed is told by the Cluster, which an adopted primary may not know yet.
        if (decision.kind === "claim" && !(this.#options.state.cluster && (this.#wanted || this.#held)))
          return idlePollMs;
        await this.#write(decision, signal);
        return this.timings.retryPeriodMs;
      case "wait":
        return Math.max(10, Math.min(eagerPollMs, decision.afterMs));
      case "refuse":
        this.#lastRefusal = decision.reason;
        this.#changed();
        return idlePollMs;
      case "lost":
        this.#held = false;
        this.#heldBefore = false;
        this.#wanted = false;
        this.#ownTransitions = undefined;
        this.#options.logger.error("Another instance took the primary lease", {
          holder: decision.holder || "released",
        });
        for (const handler of this.#lostHandlers) handler(decision.holder);
        this.#changed();
        return idlePollMs;
      default: {
        const never: never = decision;
        throw new Error(`unknown decision ${JSON.stringify(never)}`);
      }
    }
  }

  async #write(decision: { kind: "renew" } | { kind: "claim"; reason: string }, signal: AbortSignal): Promise<void> {
    const { kube, clock, logger, podName, podUid, state } = this.#options;
    const lease = this.#lease as Lease;
    const startedAt = clock.monotonicMs();
    const epoch = this.#epoch;
    const now = formatMicroTime(clock.now());
    const isClaim = decision.kind === "claim";
    const record = readRecord(lease);
    const voters = planVoters({
      me: podName,
      listed: record.voters?.voters ?? [],
      instanceNames: state.cluster?.status?.instanceNames ?? [],
      active: [
        ...(state.cluster?.status?.instancesStatus?.["healthy"] ?? []),
        ...(state.cluster?.status?.instancesStatus?.["replicating"] ?? []),
      ],
    });
    this.#lease = await kube.update(
      resources.leases,
      {
        ...lease,
        metadata: {
          ...lease.metadata,
          annotations: {
            ...lease.metadata.annotations,
            [annotations.leaseVoters]: formatLeaseVoters({ voters, holderUID: podUid }),
          },
        },
        spec: {
          ...lease.spec,
          holderIdentity: podName,
          leaseDurationSeconds: Math.round(this.timings.leaseDurationMs / 1000),
          acquireTime: isClaim || !lease.spec?.acquireTime ? now : lease.spec.acquireTime,
          renewTime: now,
          leaseTransitions: record.transitions + (isClaim ? 1 : 0),
        },
      },
      { signal: AbortSignal.any([signal, AbortSignal.timeout(this.timings.renewDeadlineMs / 2)]) },
    );
    if (epoch !== this.#epoch || (isClaim && !this.#wanted && !this.#held)) {
      // Nobody waits for it any more; kept, it would keep everyone else from being primary.
      if (isClaim) await this.#giveBack();
      return;
    }
    this.#renewedAt = startedAt;
    this.#heldBefore = true;
    this.#ownTransitions = record.transitions + (isClaim ? 1 : 0);
    if (!this.#held) {
      this.#held = true;
      logger.info("Acquired the primary lease", {
        reason: isClaim ? decision.reason : "still held by this pod",
        voters,
      });
    }
    this.#changed();
  }

  /** Gives the lease up when it is held or waited for and not needed; call it only while no PostgreSQL runs as primary. */
  async standDown(): Promise<void> {
    if (this.#wanted || this.#held || this.#heldBefore) await this.release();
  }

  #changed(): void {
    const waiters = this.#waiters;
    this.#waiters = new Set();
    for (const waiter of waiters) waiter();
  }

  /** Resolves when something about the lease changed, after the time at the latest. */
  async #nextChange(ms: number, signal: AbortSignal): Promise<void> {
    const changed = new AbortController();
    const waiter = () => changed.abort();
    this.#waiters.add(waiter);
    await this.#options.clock.sleep(ms, AbortSignal.any([signal, changed.signal])).catch(() => undefined);
    this.#waiters.delete(waiter);
  }

  /** Sleeps, unless someone starts to wait for the lease meanwhile. */
  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    await this.#options.clock.sleep(ms, AbortSignal.any([signal, woken.signal])).catch(() => undefined);
    this.#wake = undefined;
  }
}
