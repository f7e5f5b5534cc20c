import { exitCodeDiskFull } from "../api/constants.ts";
import { parseTargetPrimary } from "../api/pg-status.ts";
import { planPostmasterExit } from "../plan/instance/postmaster-exit.ts";
import { planEscalation, planStop, type StopCause, type StopPlan } from "../plan/instance/shutdown.ts";
import type { PostmasterExit } from "../ports/postmaster-host.ts";
import { defaultWalSegmentBytes } from "../postgres/wal-name.ts";
import type { InstanceContext } from "./instance-context.ts";
import type { Postmaster } from "./postmaster.ts";
import type { PrimaryLease } from "./primary-lease.ts";
import { StopRun } from "./stop-run.ts";
import { probeWalSpace, type WalSpace } from "./wal-space.ts";

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
  #unexpectedEnds: number[] = [];
  #started = false;
  #isPrimary = false;
  #logged: Promise<void> = Promise.resolve();

  constructor(options: LifecycleOptions) {
    this.#options = options;
    options.postmaster.onExit((exit) => void this.#onExit(exit));
    options.lease.onLost(() => void this.terminate("leaseLost", 1));
  }

  /** Whether PostgreSQL was started or adopted in this life of the manager. */
  get started(): boolean {
    return this.#started;
  }

  get terminating(): boolean {
    return this.#terminating !== undefined;
  }

  /** Takes over a postmaster that an earlier runtime started. */
  adopt(pid: number): void {
    this.#started = true;
    this.#options.postmaster.adopt(pid);
    this.#wakeWhenAccepting();
  }

  /** Starts PostgreSQL; a full WAL volume ends the container instead. */
  async start(): Promise<void> {
    const { context, postmaster } = this.#options;
    const unwanted = () => postmaster.pid !== undefined || this.terminating || context.state.fenced;
    if (unwanted()) return;
    if ((await this.#walSpace()) === "full") {
      context.logger.error("Not enough disk space for the next WAL segments; enlarge the WAL volume", {
        folder: context.paths.pgWal,
      });
      void this.terminate("error", exitCodeDiskFull);
      return;
    }
    if (unwanted()) return;
    await postmaster.start();
    this.#started = true;
    this.#wakeWhenAccepting();
  }

  /** Stops PostgreSQL and keeps the container. A second call can only make the stop harder. */
  async stop(cause: StopCause): Promise<void> {
    const { context, postmaster } = this.#options;
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
  }

  /** Stops and starts PostgreSQL in this container. */
  async restart(reason: string): Promise<void> {
    const { context, postmaster } = this.#options;
    context.logger.info("Restarting PostgreSQL", { reason });
    context.state.restarting = true;
    try {
      await this.stop("restart");
      await this.start();
      await postmaster.waitUntilAccepting();
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
    wake();
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
    const { context, lease, postmaster } = this.#options;
    context.logger.info("Stopping the instance", { cause, code });
    context.state.stopping = true;
    await this.stop(cause);
    // A new round may be needed when the exit handler had just started PostgreSQL again.
    while (postmaster.pid !== undefined) await this.stop(cause);
    await lease.release();
    await this.#logged;
    await this.#options.finish(code);
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
    this.#isPrimary = (await context.data.role()) === "primary";
    return planStop({
      cause,
      isPrimary: this.#isPrimary,
      stopDelayMs: (spec?.stopDelay ?? 1800) * 1000,
      smartShutdownMs: (spec?.smartShutdownTimeout ?? 180) * 1000,
      switchoverDelayMs: (spec?.switchoverDelay ?? 3600) * 1000,
    });
  }

  async #walSpace(): Promise<WalSpace> {
    const { context } = this.#options;
    const control = await context.data.tryControl();
    return probeWalSpace(context.paths.pgWal, control?.walSegmentBytes ?? defaultWalSegmentBytes);
  }

  async #onExit(exit: PostmasterExit): Promise<void> {
    const { context, lease, wake } = this.#options;
    const stopping = this.#stop !== undefined || this.terminating || context.state.fenced;
    context.logger.info("postmaster exited", { postMasterPID: exit.pid, exitCode: exit.code, signal: exit.signal });
    if (stopping) return;
    const now = context.clock.monotonicMs();
    const status = context.state.cluster?.status;
    const target = parseTargetPrimary(status?.targetPrimary);
    const decision = planPostmasterExit({
      stopping,
      isPrimary: (await context.data.role()) === "primary",
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
    wake();
  }

  /** The reconciler has work as soon as the server answers. */
  #wakeWhenAccepting(): void {
    const { postmaster, wake, context } = this.#options;
    postmaster.waitUntilAccepting().then(
      (accepting) => {
        if (accepting) wake();
      },
      (error) => context.logger.warning("Could not watch PostgreSQL coming up", { error }),
    );
  }
}
