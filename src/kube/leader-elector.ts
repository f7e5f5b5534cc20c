import type { Lease } from "../api/generated/kubernetes.ts";
import type { Clock, Random } from "../ports/clock.ts";
import { isKubeError, type KubeApi } from "../ports/kube-api.ts";
import type { Logger } from "../ports/logger.ts";
import { type Runnable, StopReason } from "../runtime/runnable.ts";
import { systemRandom } from "../runtime/system-random.ts";
import { type LeaseObservation, type LeaseTimings, observeLease, planLease, releasedLease } from "./lease-decision.ts";
import { resources } from "./resources.ts";

export interface LeaderElectorOptions {
  api: KubeApi;
  namespace: string;
  /** Name of the Lease. */
  name: string;
  /** Who we are; unique for each process, also across restarts of one pod. */
  identity: string;
  clock: Clock;
  /** @default the system's random values */
  random?: Random;
  logger: Logger;
  /** @default 15000 */
  leaseDurationMs?: number;
  /** @default 10000 */
  renewDeadlineMs?: number;
  /** @default 2000 */
  retryPeriodMs?: number;
  /** Called once when leadership begins. */
  onStarted?: () => void;
  /** Called once when leadership ends, before `run` ends. */
  onStopped?: () => void;
}

/** Competes for a Lease; `run` rejects when leadership is lost, and gives it back when it is told to stop. */
export interface LeaderElector extends Runnable {
  isLeader(): boolean;
}

/** The error that ends the program of a former leader. */
export class LeadershipLostError extends Error {
  override readonly name = "LeadershipLostError";
}

/** Creates an elector; one elector is good for one `run`. */
export function createLeaderElector(options: LeaderElectorOptions): LeaderElector {
  return new LeaseElector(options);
}

class LeaseElector implements LeaderElector {
  readonly name = "leader election";
  readonly #options: LeaderElectorOptions;
  readonly #timings: LeaseTimings;
  readonly #random: Random;
  readonly #logger: Logger;
  #observation: LeaseObservation | undefined;
  #wrote = false;
  /** Start of the last renewal that the server confirmed; the right to lead is counted from here. */
  #confirmedAt: number | undefined;
  #leader = false;

  constructor(options: LeaderElectorOptions) {
    this.#options = options;
    this.#timings = {
      leaseDurationMs: options.leaseDurationMs ?? 15_000,
      renewDeadlineMs: options.renewDeadlineMs ?? 10_000,
      retryPeriodMs: options.retryPeriodMs ?? 2_000,
    };
    const { leaseDurationMs, renewDeadlineMs, retryPeriodMs } = this.#timings;
    if (leaseDurationMs <= renewDeadlineMs || renewDeadlineMs <= retryPeriodMs) {
      throw new Error("leader election needs leaseDuration > renewDeadline > retryPeriod");
    }
    this.#random = options.random ?? systemRandom;
    this.#logger = options.logger.child({ logger: "leader-election", lease: `${options.namespace}/${options.name}` });
  }

  isLeader(): boolean {
    return this.#leader && this.#restMs() > 0;
  }

  async run(signal: AbortSignal): Promise<void> {
    try {
      while (!signal.aborted) {
        await this.#attempt(signal);
        if (signal.aborted) break;
        if (this.#leader && this.#restMs() <= 0) {
          throw new LeadershipLostError(`leadership of ${this.#options.name} could not be renewed in time`);
        }
        await this.#pause(signal);
      }
    } finally {
      const led = this.#leader;
      this.#leader = false;
      if (led) this.#options.onStopped?.();
    }
    // Work that did not end in time may still act as leader: then a successor has to wait for the Lease to run out.
    const mayRelease = !(signal.reason instanceof StopReason) || signal.reason.unfinished.length === 0;
    if (this.#wrote && mayRelease) await this.#release();
  }

  /** One look at the Lease and at most one write; failures only cost time. */
  async #attempt(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const began = clock.monotonicMs();
    const bounded = this.#boundedSignal(signal);
    try {
      await this.#tryAcquireOrRenew(began, bounded.signal);
    } catch (error) {
      if (error instanceof LeadershipLostError) throw error;
      if (!signal.aborted) this.#logger.warning("Leader election attempt failed", { error, leader: this.#leader });
    } finally {
      bounded.end();
    }
  }

  async #tryAcquireOrRenew(began: number, signal: AbortSignal): Promise<void> {
    const { api, clock, identity, namespace, name } = this.#options;
    const lease = await this.#read(signal);
    const nowMs = clock.monotonicMs();
    this.#observation = observeLease(this.#observation, lease?.spec, nowMs);
    const decision = planLease({
      spec: lease?.spec,
      identity,
      observation: this.#observation,
      nowMs,
      wallMs: clock.now(),
      timings: this.#timings,
    });
    if (this.#leader && decision.action !== "renew") {
      throw new LeadershipLostError(`leadership of ${name} was taken: ${decision.reason}`);
    }
    if (decision.action === "wait") {
      this.#logger.debug("Not leading", { reason: decision.reason });
      return;
    }
    this.#wrote = true;
    const written = lease
      ? await api.update(resources.leases, { ...lease, spec: decision.spec }, { signal })
      : await api.create(
          resources.leases,
          { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { namespace, name }, spec: decision.spec },
          { signal },
        );
    this.#observation = observeLease(this.#observation, written.spec, clock.monotonicMs());
    this.#confirmedAt = began;
    if (this.#leader) return;
    this.#leader = true;
    this.#logger.info("Leading", { reason: decision.reason, identity });
    this.#options.onStarted?.();
  }

  async #read(signal: AbortSignal): Promise<Lease | undefined> {
    const { api, namespace, name } = this.#options;
    try {
      return await api.get(resources.leases, { namespace, name }, { signal });
    } catch (error) {
      if (isKubeError(error, "notFound")) return undefined;
      throw error;
    }
  }

  /** A request may hang; it must end soon enough for another try, and at the deadline in any case. */
  #boundedSignal(signal: AbortSignal): { signal: AbortSignal; end(): void } {
    const bound = this.#leader
      ? Math.min(this.#restMs(), this.#timings.renewDeadlineMs / 2)
      : this.#timings.renewDeadlineMs;
    const over = new AbortController();
    const late = new AbortController();
    this.#options.clock.sleep(Math.max(0, bound), over.signal).then(
      () => late.abort(new Error(`no answer within ${Math.round(bound)} ms`)),
      () => undefined,
    );
    return { signal: AbortSignal.any([signal, late.signal]), end: () => over.abort() };
  }

  #restMs(): number {
    if (this.#confirmedAt === undefined) return 0;
    return this.#timings.renewDeadlineMs - (this.#options.clock.monotonicMs() - this.#confirmedAt);
  }

  async #pause(signal: AbortSignal): Promise<void> {
    const { retryPeriodMs } = this.#timings;
    // Candidates spread out; a leader keeps its beat but never sleeps past its deadline.
    const ms = this.#leader
      ? Math.min(retryPeriodMs, this.#restMs())
      : retryPeriodMs * (1 + 0.2 * this.#random.float());
    await this.#options.clock.sleep(ms, signal).catch(() => undefined);
  }

  async #release(): Promise<void> {
    const { api, clock, identity } = this.#options;
    const stop = new AbortController();
    const bounded = this.#boundedSignal(stop.signal);
    try {
      const lease = await this.#read(bounded.signal);
      if (lease?.spec?.holderIdentity !== identity) return;
      await api.update(
        resources.leases,
        { ...lease, spec: releasedLease(lease.spec, clock.now()) },
        { signal: bounded.signal },
      );
      this.#logger.info("Leadership given back", { identity });
    } catch (error) {
      // The Lease ends by itself; a successor only waits a little longer.
      this.#logger.warning("Leadership could not be given back", { error });
    } finally {
      bounded.end();
    }
  }
}
