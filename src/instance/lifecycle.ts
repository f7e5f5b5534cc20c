import { exitCodeDiskFull } from "../api/constants.ts";
import { parseTargetPrimary } from "../api/pg-status.ts";
import { planPostmasterExit } from "../plan/instance/postmaster-exit.ts";
import { asksBeforePromotion } from "../plan/instance/promotion.ts";
import { isAlone } from "../plan/instance/right-to-write.ts";
import { planStart } from "../plan/instance/role.ts";
import { planEscalation, planStop, type StopCause, type StopPlan } from "../plan/instance/shutdown.ts";
import type { PostmasterExit } from "../ports/postmaster-host.ts";
import { defaultWalSegmentBytes } from "../postgres/wal-name.ts";
import { within } from "../runtime/within.ts";
import type { InstanceContext } from "./instance-context.ts";
import type { Postmaster } from "./postmaster.ts";
import type { PrimaryLease } from "./primary-lease.ts";
import { StopRun } from "./stop-run.ts";
import { probeWalSpace, type WalSpace } from "./wal-space.ts";

/** How long a stop waits for a disk that does not answer before it goes on with what it knows. */
const roleLimitMs = 1_000;
/** A stop by signal waits so long for the reason of the signal before it starts the patient way. */
const forcedAnswerMs = 300;
/** What a successor can find out by itself is not waited for longer. */
const walEndLimitMs = 500;
/** How long the end of the container waits for the log about the stopped server. */
const loggedLimitMs = 2_000;

export interface LifecycleOptions {
  context: InstanceContext;
  postmaster: Postmaster;
  lease: PrimaryLease;
  /** Something happened that the reconciler should look at. */
  wake: () => void;
  /** Ends everything else and the container. */
  finish: (code: number) => Promise<void>;
}

/** Starts, stops and restarts PostgreSQL, and decides what its end means. */
export class Lifecycle {
  readonly #options: LifecycleOptions;
  #stop: StopRun | undefined;
  #terminating: Promise<void> | undefined;
  #steppingDown: Promise<void> | undefined;
  #unexpectedEnds: number[] = [];
  /** The start under way; there is one at a time. */
  #starting: Promise<boolean> | undefined;
  /** Stops asked for that did not come to their end. */
  #stopsWanted = 0;
  /** Unexpected ends whose consequence is being decided or carried out. */
  #endsAtHand = 0;
  #isPrimary = false;
  #logged: Promise<void> = Promise.resolve();

  constructor(options: LifecycleOptions) {
    this.#options = options;
    options.postmaster.onExit((exit) => {
      this.#onExit(exit).catch((error) => {
        options.context.logger.error("The end of PostgreSQL could not be handled", { error });
        void this.terminate("error", 1);
      });
    });
    options.lease.onLost(() => void this.terminate("leaseLost", 1));
  }

  /** Whether a start or a stop of PostgreSQL is under way. */
  get busy(): boolean {
    const isMoving = this.#starting !== undefined || this.#stopsWanted > 0 || this.#endsAtHand > 0;
    return isMoving || this.#steppingDown !== undefined || this.terminating;
  }

  get terminating(): boolean {
    return this.#terminating !== undefined;
  }

  /** Takes over a postmaster that an earlier runtime started. */
  adopt(pid: number): void {
    this.#options.postmaster.adopt(pid);
    this.#wakeWhenAccepting();
  }

  /** Starts PostgreSQL unless that is not wanted any more; true when it runs. A full WAL volume ends the container instead. */
  start(): Promise<boolean> {
    this.#starting ??= this.#start().finally(() => {
      this.#starting = undefined;
    });
    return this.#starting;
  }

  async #start(): Promise<boolean> {
    const { context, lease, postmaster } = this.#options;
    const unwanted = () => {
      return this.terminating || this.#steppingDown !== undefined || this.#stopsWanted > 0 || context.state.fenced;
    };
    if (postmaster.pid !== undefined) return true;
    if (unwanted()) return false;
    if ((await this.#walSpace()) === "full") {
      context.logger.error("Not enough disk space for the next WAL segments; enlarge the WAL volume", {
        folder: context.paths.pgWal,
      });
      void this.terminate("error", exitCodeDiskFull);
      return false;
    }
    const dataRole = await context.data.role();
    const decision = planStart({
      me: context.settings.podName,
      target: parseTargetPrimary(context.state.cluster?.status?.targetPrimary),
      dataRole,
      leaseHeld: lease.held,
    });
    if (decision.kind === "refuse") {
      context.logger.warning("PostgreSQL is not started", { reason: decision.reason });
      return false;
    }
    if (unwanted()) return false;
    await postmaster.start();
    this.#wakeWhenAccepting();
    return true;
  }

  /** Stops PostgreSQL and keeps the container. A second call can only make the stop harder. */
  async stop(cause: StopCause): Promise<void> {
    const { context, postmaster } = this.#options;
    this.#stopsWanted += 1;
    try {
      // A start under way gives up when it sees this, or has to be followed to its process.
      await this.#starting?.catch(() => undefined);
      if (postmaster.pid === undefined) return;
      const plan = await this.#plan(cause);
      if (this.#stop) {
        this.#stop.harden(plan, cause);
      } else {
        this.#stop = new StopRun(context, postmaster, plan);
        this.observeCluster();
      }
      const stop = this.#stop;
      await stop.done;
      this.#logged = stop.logged;
      if (this.#stop === stop) this.#stop = undefined;
    } finally {
      this.#stopsWanted -= 1;
    }
  }

  /** Stops and starts PostgreSQL in this container; resolves once it takes connections, throws when it does not come up. */
  async restart(reason: string, signal?: AbortSignal): Promise<void> {
    const { context, postmaster } = this.#options;
    context.logger.info("Restarting PostgreSQL", { reason });
    context.state.restarting = true;
    try {
      await this.stop("restart");
      const up = (await this.start()) && (await postmaster.waitUntilAccepting(signal));
      signal?.throwIfAborted();
      if (!up) throw new Error("PostgreSQL did not come up after its restart; the next pass looks what it may do");
    } finally {
      context.state.restarting = false;
    }
  }

  /** Keeps PostgreSQL down until {@link unfence}. */
  async fence(): Promise<void> {
    const { context } = this.#options;
    context.logger.info("Fencing is on: PostgreSQL is being stopped");
    context.state.fenced = true;
    await this.stop("fence");
  }

  unfence(): void {
    const { context, wake } = this.#options;
    context.logger.info("Fencing is off");
    context.state.fenced = false;
    context.state.unfencing = true;
    wake();
  }

  /**
   * Stops a primary that is to be none any more and gives the lease back. The container stays, and the passes after this look at
   * the files as a fresh one would (ADR 0015). A second call can only make the stop harder.
   */
  stepDown(cause: "switchover" | "failover"): Promise<void> {
    const underWay = this.#terminating ?? this.#steppingDown;
    if (underWay) {
      void this.stop(cause);
      return underWay;
    }
    const { context, wake } = this.#options;
    context.logger.info("Stepping down as the primary", { cause });
    this.#steppingDown = this.#down(cause).finally(() => {
      this.#steppingDown = undefined;
      wake();
    });
    return this.#steppingDown;
  }

  /** Stops PostgreSQL, and then gives the lease back. */
  async #down(cause: StopCause): Promise<void> {
    const { lease, postmaster } = this.#options;
    await this.stop(cause);
    // A new round may be needed when the exit handler had just started PostgreSQL again.
    while (postmaster.pid !== undefined) await this.stop(cause);
    await lease.release(await this.#walEnd(cause));
  }

  /** Stops PostgreSQL, gives the lease back and ends the container. A second call can only make the stop harder. */
  async terminate(cause: StopCause, code: number): Promise<void> {
    if (this.#terminating) {
      void this.stop(cause);
      return this.#terminating;
    }
    this.#terminating = this.#terminate(cause, code);
    return this.#terminating;
  }

  async #terminate(cause: StopCause, code: number): Promise<void> {
    const { context } = this.#options;
    context.logger.info("Stopping the instance", { cause, code });
    context.state.stopping = true;
    await this.#down(cause);
    // What it began before this one, such as telling the voters, is brought to its end.
    await this.#steppingDown?.catch(() => undefined);
    await within(context.clock, loggedLimitMs, this.#logged, undefined);
    await this.#options.finish(code);
  }

  /**
   * Ends the instance because of a signal. A primary whose pod was deleted by force has two seconds until it is killed,
   * and others wait for its Lease: then the patient steps are left out.
   */
  async terminateOnSignal(wasForced: () => Promise<boolean>): Promise<void> {
    const { context, lease } = this.#options;
    const cause = context.state.isolated ? "isolated" : "signal";
    const { right } = lease;
    if (!right || isAlone(right, context.settings.podName) || this.terminating) return this.terminate(cause, 0);
    const asked = wasForced().then((forced) => (forced ? this.terminate("forced", 0) : undefined));
    await within(context.clock, forcedAnswerMs, asked, undefined);
    await this.terminate(cause, 0);
  }

  /** Looks whether a stop under way has to become harder; call it whenever the Cluster changed. */
  observeCluster(): void {
    const { context } = this.#options;
    if (!this.#stop) return;
    const escalation = planEscalation({
      mode: this.#stop.mode,
      isPrimary: this.#isPrimary,
      me: context.settings.podName,
      target: parseTargetPrimary(context.state.cluster?.status?.targetPrimary),
      leaseLost: false,
      isolated: context.state.isolated,
    });
    if (escalation) this.#stop.escalate(escalation.mode, escalation.reason);
  }

  async #plan(cause: StopCause): Promise<StopPlan> {
    const { context } = this.#options;
    const spec = context.state.cluster?.spec;
    this.#isPrimary = (await this.#roleAtHand()) === "primary";
    return planStop({
      cause,
      isPrimary: this.#isPrimary,
      stopDelayMs: (spec?.stopDelay ?? 1800) * 1000,
      smartShutdownMs: (spec?.smartShutdownTimeout ?? 180) * 1000,
      switchoverDelayMs: (spec?.switchoverDelay ?? 3600) * 1000,
    });
  }

  /** Where the WAL of a primary ends that was stopped in order: a successor that has all of it need ask nobody. */
  async #walEnd(cause: StopCause): Promise<string | undefined> {
    const { clock, data, state, settings } = this.#options.context;
    const mayTakeTime = cause === "switchover" || cause === "signal" || cause === "failover";
    if (!this.#isPrimary || !mayTakeTime) return undefined;
    if (!state.cluster || !asksBeforePromotion(state.cluster, settings.podName)) return undefined;
    const control = await within(clock, walEndLimitMs, data.tryControl(), undefined);
    return control?.state === "shut down" ? control.checkpointLsn : undefined;
  }

  /** The role by files, or as last known when the disk does not answer: a stop must not depend on it. */
  #roleAtHand(): Promise<"primary" | "standby"> {
    const { clock, data } = this.#options.context;
    const known = data.knownRole ?? "primary";
    return within(
      clock,
      roleLimitMs,
      data.role().catch(() => known),
      known,
    );
  }

  async #walSpace(): Promise<WalSpace> {
    const { context } = this.#options;
    const control = await context.data.tryControl();
    return probeWalSpace(context.paths.pgWal, control?.walSegmentBytes ?? defaultWalSegmentBytes);
  }

  async #onExit(exit: PostmasterExit): Promise<void> {
    const { context } = this.#options;
    const stopping = this.#stopsWanted > 0 || this.terminating || context.state.fenced;
    context.logger.info("postmaster exited", { postMasterPID: exit.pid, exitCode: exit.code, signal: exit.signal });
    if (stopping) return;
    this.#endsAtHand += 1;
    try {
      await this.#followUnexpectedEnd();
    } finally {
      this.#endsAtHand -= 1;
      this.#options.wake();
    }
  }

  async #followUnexpectedEnd(): Promise<void> {
    const { context, lease } = this.#options;
    const now = context.clock.monotonicMs();
    const status = context.state.cluster?.status;
    const target = parseTargetPrimary(status?.targetPrimary);
    const decision = planPostmasterExit({
      stopping: false,
      isPrimary: (await this.#roleAtHand()) === "primary",
      me: context.settings.podName,
      current: status?.currentPrimary ?? "",
      target: target.kind === "instance" ? target.name : undefined,
      leaseHeld: lease.held,
      walSpace: await this.#walSpace(),
      earlier: this.#unexpectedEnds,
      now,
    });
    this.#unexpectedEnds.push(now);
    if (decision.kind === "exit") {
      context.logger.error("PostgreSQL has ended and is not started again here", { reason: decision.reason });
      await this.terminate("error", decision.code);
    } else if (decision.kind === "restart") {
      context.logger.warning("PostgreSQL has ended and is started again", { reason: decision.reason });
      await this.start().catch((error) => {
        context.logger.error("PostgreSQL could not be started again", { error });
        return this.terminate("error", 1);
      });
    }
  }

  /** The reconciler has work as soon as the server answers. */
  #wakeWhenAccepting(): void {
    const { postmaster, wake, context } = this.#options;
    postmaster.waitUntilAccepting().then(
      (accepting) => {
        context.state.unfencing = false;
        if (accepting) wake();
      },
      (error) => context.logger.warning("Could not watch PostgreSQL coming up", { error }),
    );
  }
}
