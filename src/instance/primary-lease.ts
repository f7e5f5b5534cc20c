import type { Cluster } from "../api/generated/cluster.ts";
import type { Lease } from "../api/generated/kubernetes.ts";
import { annotations } from "../api/labels.ts";
import { formatLeaseVoters, type LeaseVoters, parseLeaseVoters } from "../api/lease-voters.ts";
import { formatMicroTime } from "../api/micro-time.ts";
import { namedPrimary } from "../api/named-primary.ts";
import { type LeaseReport, parseTargetPrimary } from "../api/pg-status.ts";
import { resources } from "../kube/resources.ts";
import {
  compileLeaseTimings,
  isOwnLease,
  type LeaseDecision,
  type LeaseRecord,
  type LeaseTimings,
  mustHandOver,
  mustRelist,
  planLease,
  planVoters,
} from "../plan/instance/lease.ts";
import {
  binds,
  type Grant,
  grantOf,
  type PromiseAnswer,
  type PromiseRequest,
  planPromise,
} from "../plan/instance/promise.ts";
import { isReleasedBy, type ReleaseNotice } from "../plan/instance/release-notice.ts";
import {
  adoptedRight,
  compileRightTimings,
  type PromiseRound,
  type RightState,
  type RightTimings,
  rightAfterRound,
  rightAfterWrite,
  rightWhileWriting,
  stateOfRight,
  type WriteRight,
} from "../plan/instance/right-to-write.ts";
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
/** A write that takes longer is given up; nobody knows then what becomes of it. */
const writeLimitMs = 3_000;
/** Renew times of writes of unknown outcome that are remembered: a right ends before there can be more. */
const rememberedWrites = 10;
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
  /**
   * The right to write was proved anew or has other voters; called before anybody can make use of that. `undefined`: it was
   * given back, PostgreSQL is no primary.
   */
  onRight?: (right: WriteRight | undefined) => void;
  /** Tells other instances that PostgreSQL is down here; resolves when they know or the time for it is over. */
  tell?: (voters: readonly string[], notice: ReleaseNotice) => Promise<void>;
}

/** `former`: an earlier pod of the own name, or nobody since an instance of the own name gave it back. */
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

/** Whether a person named this instance for a record that nobody else may decide about. */
function isNamed(cluster: Cluster | undefined, record: LeaseRecord, podName: string): boolean {
  return cluster !== undefined && namedPrimary(cluster, { ...record, voters: record.voters?.voters }) === podName;
}

function withVoters(lease: Lease, voters: LeaseVoters): Lease {
  const noted = { ...lease.metadata.annotations, [annotations.leaseVoters]: formatLeaseVoters(voters) };
  return { ...lease, metadata: { ...lease.metadata, annotations: noted } };
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
  /** It is wanted only to be given back with another list of voters. */
  #relisting = false;
  #idleLook = new AbortController();
  #held = false;
  #heldBefore = false;
  /** `leaseTransitions` of the last record that was this pod's. */
  #ownTransitions: number | undefined;
  /** Grows with each release, so that a write that was under way does not bring the lease back. */
  #epoch = 0;
  #right: WriteRight | undefined;
  /** The promise to another holder. */
  #grant: Grant | undefined;
  /** What a holder told of itself last. */
  #told: ReleaseNotice | undefined;
  /** Renew times of writes whose outcome is not known. */
  #attempted: string[] = [];
  /** Version that a write which would take the Lease goes against, until it is known what became of that write. */
  #claiming: string | undefined;
  #lastRefusal = "";
  #wake: (() => void) | undefined;
  #waiters = new Set<() => void>();

  constructor(options: PrimaryLeaseOptions) {
    this.#options = options;
    this.#startedAt = options.clock.monotonicMs();
  }

  /** Whether the right to write is good at this moment, and for long enough to start something. */
  get held(): boolean {
    return this.#held && this.rightState.kind === "good";
  }

  get right(): WriteRight | undefined {
    return this.#right;
  }

  get rightTimings(): RightTimings {
    return compileRightTimings(this.timings);
  }

  get rightState(): RightState {
    const now = this.#options.clock.monotonicMs();
    return stateOfRight(this.#right, { me: this.#options.podName, now, timings: this.rightTimings });
  }

  /** Takes what the voters answered; the right gets longer when all of them granted. */
  applyRound(round: PromiseRound): void {
    const now = this.#options.clock.monotonicMs();
    const view = { me: this.#options.podName, now, timings: this.rightTimings };
    const next = rightAfterRound(this.#right, round, view);
    if (next && next !== this.#right) this.#setRight(next);
  }

  /** The right is over and PostgreSQL is down: from here on only a Lease write brings it back. */
  lapse(): void {
    if (this.rightState.kind !== "good") this.#right = undefined;
  }

  #setRight(right: WriteRight): void {
    this.#right = right;
    this.#options.onRight?.(right);
  }

  /** Promises a holder that can't renew to leave the Lease alone, or says why not (safety protocol §1.3). */
  promise(request: PromiseRequest): PromiseAnswer {
    const { podName, clock, namespace, clusterName } = this.#options;
    const now = clock.monotonicMs();
    const grant = this.#bindingGrant(now);
    const isHolder = this.#held || this.#heldBefore;
    const record = this.#record;
    const answer = planPromise(
      {
        cluster: `${namespace}/${clusterName}`,
        me: podName,
        record,
        claiming: this.#claiming !== undefined,
        isHolder,
        grant,
      },
      request,
    );
    if (answer.granted) this.#grant = grantOf(grant, request, now);
    return answer;
  }

  /** Takes what a holder tells of itself. */
  noteRelease(notice: ReleaseNotice): void {
    const { namespace, clusterName, logger } = this.#options;
    if (notice.cluster !== `${namespace}/${clusterName}`) return;
    logger.info("The holder of the primary lease tells that PostgreSQL is down there", { holder: notice.holder });
    this.#told = notice;
    this.#wake?.();
  }

  /** The Lease as this instance sees it, for those who decide about a failover. */
  report(): LeaseReport {
    const now = this.#options.clock.monotonicMs();
    const grant = this.#bindingGrant(now);
    return {
      ...(this.#record ? { holder: this.#record.holder } : {}),
      ...(this.#seen ? { silentMs: Math.round(now - this.#seen.at) } : {}),
      ...(grant ? { grant: { holder: grant.holder, leftMs: Math.round(grant.until - now) } } : {}),
    };
  }

  #bindingGrant(now: number): Grant | undefined {
    return binds(this.#grant, this.#record, now, this.#told) ? this.#grant : undefined;
  }

  /** The record as it was last read or written. */
  #record: LeaseRecord | undefined;

  get timings(): LeaseTimings {
    return this.#timings ?? compileLeaseTimings(this.#options.state.cluster?.spec.primaryLease);
  }

  /**
   * A primary was found running: its right came from this pod's lease, which is renewed from here on or found lost.
   * `deadlineMs` is what the launcher has left; without a deadline nobody else could take the lease.
   */
  adoptPrimary(deadlineMs?: number): void {
    this.#heldBefore = true;
    this.#wanted = true;
    const now = this.#options.clock.monotonicMs();
    if (deadlineMs !== undefined) this.#right = adoptedRight({ deadlineMs, now, timings: this.rightTimings });
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
      // Who gave it back had it last: nobody was primary after it.
      if (holder === "") return parseLeaseVoters(lease)?.releasedBy === podName ? "former" : "nobody";
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
    this.#relisting = false;
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
    this.#relisting = false;
    this.#epoch += 1;
    this.#right = undefined;
    this.#options.onRight?.(undefined);
    if (!this.#heldBefore) return;
    this.#held = false;
    this.#heldBefore = false;
    await this.#giveBack();
  }

  /**
   * Gives back what an earlier runtime of this pod held, when every process that it left has SIGKILL pending: on a dead disk
   * they may never be seen to end, but none of them gets to run any more.
   */
  async releaseKilled(): Promise<void> {
    this.#options.onRight?.(undefined);
    await this.#giveBack();
  }

  /** By a write, and by telling the voters: the API server does not listen to a pod any more whose object is gone. */
  async #giveBack(): Promise<void> {
    const notice = this.#releaseNotice();
    const voters = (this.#record?.voters?.voters ?? []).filter((name) => name !== this.#options.podName);
    await Promise.all([this.#writeRelease(), notice && this.#options.tell?.(voters, notice)]);
  }

  #releaseNotice(): ReleaseNotice | undefined {
    const { namespace, clusterName, podName, podUid } = this.#options;
    const record = this.#record;
    if (!record || !this.#isOwnRecord(record)) return undefined;
    const renewTimes = [...new Set([record.renewTime, ...this.#attempted])];
    const cluster = `${namespace}/${clusterName}`;
    return { cluster, holder: podName, holderUID: podUid, transitions: record.transitions, renewTimes };
  }

  async #writeRelease(): Promise<void> {
    const { logger, namespace, clusterName, state, podUid } = this.#options;
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
        // The successor to be may be too young to be listed; with this write everybody's right is over anyway.
        const voters = this.#planVoters(readRecord(lease), state.cluster?.status?.targetPrimary);
        const released = withVoters(
          { ...lease, spec },
          {
            voters,
            holderUID: podUid,
            releasedBy: this.#options.podName,
          },
        );
        const limit = AbortSignal.timeout(3_000);
        this.#notice(readRecord(await this.#options.kube.update(resources.leases, released, { signal: limit })));
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

  /** A Lease without a history rests on the Cluster alone, so the copy at hand must not be an old one. */
  async #mayClaimNew(record: LeaseRecord, signal: AbortSignal): Promise<boolean> {
    const { kube, namespace, clusterName, podName } = this.#options;
    const key = { namespace, name: clusterName };
    const cluster = await kube.get(resources.clusters, key, { timeoutMs: readLimitMs, signal });
    if (isNamed(cluster, record, podName)) return true;
    const current = cluster.status?.currentPrimary ?? "";
    return record.transitions === 0 && (current === "" || current === podName);
  }

  /** Whether nothing but the Cluster says who may take the Lease: it has no history, or a person decides. */
  #restsOnCluster(): boolean {
    const record = this.#record;
    const { podName, state } = this.#options;
    if (!record || record.transitions === 0) return record !== undefined;
    const isListed = record.voters?.voters.includes(podName) ?? true;
    return !isListed && isNamed(state.cluster, record, podName);
  }

  #planVoters(record: LeaseRecord, successor?: string): string[] {
    const { podName, state } = this.#options;
    const status = state.cluster?.status;
    return planVoters({
      me: podName,
      listed: record.voters?.voters ?? [],
      // Without a Cluster nobody is known to have left.
      instanceNames: status?.instanceNames ?? record.voters?.voters ?? [],
      active: [
        ...(status?.instancesStatus?.["healthy"] ?? []),
        ...(status?.instancesStatus?.["replicating"] ?? []),
        ...(successor ? [successor] : []),
      ],
    });
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
        // A write against another version than this one can't succeed any more, or has done so and shows here.
        if (this.#lease.metadata.resourceVersion !== this.#claiming) this.#claiming = undefined;
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
        const silentMs = clock.monotonicMs() - (this.#right?.basis ?? this.#startedAt);
        logger.warning("Could not renew the primary lease", { error, rightAgeMs: Math.round(silentMs) });
      } else if (!conflict) {
        logger.debug("Could not read the primary lease", { error });
      }
      return conflict ? 20 : Math.max(failurePauseMs, this.timings.retryPeriodMs);
    }
  }

  #notice(record: LeaseRecord): LeaseRecord {
    this.#record = record;
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
      rightHeld: this.#held && this.rightState.kind !== "none",
      leaseDurationMs: this.timings.leaseDurationMs,
      currentPrimary: state.cluster?.status?.currentPrimary ?? "",
      clusterOfOne: state.cluster?.spec.instances === 1,
      promisedMs: Math.max(0, (this.#bindingGrant(now)?.until ?? now) - now),
      toldReleased: isReleasedBy(this.#told, record),
      named: isNamed(state.cluster, record, podName),
    });
  }

  async #act(decision: LeaseDecision, signal: AbortSignal): Promise<number> {
    switch (decision.kind) {
      case "renew":
      case "claim":
        // Whether a lease without history may be claimed is told by the Cluster, which an adopted primary may not know yet.
        if (decision.kind === "claim" && !(this.#options.state.cluster && (this.#wanted || this.#held)))
          return idlePollMs;
        if (this.#restsOnCluster() && !(await this.#mayClaimNew(this.#record as LeaseRecord, signal))) {
          this.#lease = undefined;
          return failurePauseMs;
        }
        await this.#write(decision, signal);
        return this.timings.retryPeriodMs;
      case "wait":
        this.#lease = undefined;
        return Math.max(10, Math.min(eagerPollMs, decision.afterMs));
      case "refuse":
        // Also who holds it by its own account has to look again: somebody may have changed the record since.
        this.#lease = undefined;
        this.#lastRefusal = decision.reason;
        this.#changed();
        return idlePollMs;
      case "lost":
        this.#held = false;
        this.#heldBefore = false;
        this.#wanted = false;
        this.#ownTransitions = undefined;
        // The launcher's deadline stays until PostgreSQL is down.
        this.#right = undefined;
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
    const { kube, clock, logger, podName, podUid } = this.#options;
    const lease = this.#lease as Lease;
    const startedAt = clock.monotonicMs();
    const epoch = this.#epoch;
    const now = formatMicroTime(clock.now());
    const isClaim = decision.kind === "claim";
    const record = readRecord(lease);
    const voters = this.#planVoters(record);
    const transitions = record.transitions + (isClaim ? 1 : 0);
    const during = rightWhileWriting(this.#right, { me: podName, startedAt, voters });
    if (during) this.#setRight(during);
    const version = lease.metadata.resourceVersion ?? "";
    this.#claiming = version;
    this.#attempted = [...this.#attempted.slice(-rememberedWrites), now];
    const written = await kube
      .update(
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
            leaseTransitions: transitions,
          },
        },
        {
          signal: AbortSignal.any([
            signal,
            AbortSignal.timeout(Math.min(writeLimitMs, this.timings.renewDeadlineMs / 2)),
          ]),
        },
      )
      .catch((error) => {
        // Whatever else happened, the write may still be on its way.
        if (isKubeError(error, "conflict")) this.#claiming = undefined;
        throw error;
      });
    this.#lease = written;
    this.#claiming = undefined;
    this.#attempted = [];
    if (isClaim && this.#relisting) {
      this.#relisting = false;
      this.#wanted = false;
    }
    if (epoch !== this.#epoch || (isClaim && !this.#wanted && !this.#held)) {
      // Nobody waits for it any more; kept, it would keep everyone else from being primary.
      if (isClaim) await this.#giveBack();
      return;
    }
    this.#notice(readRecord(written));
    this.#setRight(rightAfterWrite({ startedAt, voters, transitions }));
    this.#heldBefore = true;
    this.#ownTransitions = transitions;
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
    const { podName, state } = this.#options;
    const record = this.#record;
    // An earlier container of this pod may have ended before it could give the Lease back.
    if (record && this.#isOwnRecord(record)) this.#heldBefore = true;
    if (this.#held || this.#heldBefore) return this.release();
    const { currentPrimary = "", targetPrimary = "" } = state.cluster?.status ?? {};
    const target = parseTargetPrimary(targetPrimary);
    const successor = target.kind === "instance" ? target.name : "";
    if (record && mustHandOver({ me: podName, record, currentPrimary, targetPrimary: successor })) {
      // Once it is held, it is given back with the successor on the list.
      this.#wanted = true;
      this.#wake?.();
    } else if (record && this.#mustRelist(record, currentPrimary, successor)) {
      this.#relisting = true;
      this.#wanted = true;
      this.#wake?.();
    } else if (this.#wanted) {
      await this.release();
    }
  }

  #mustRelist(record: LeaseRecord, currentPrimary: string, targetPrimary: string): boolean {
    const voters = this.#planVoters(record);
    return mustRelist({ me: this.#options.podName, record, currentPrimary, targetPrimary, voters });
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
