import { isHarder, type StopMode, type StopPlan, severity } from "../plan/instance/shutdown.ts";
import type { InstanceContext } from "./instance-context.ts";
import { closeLocalSessions, withSession } from "./local-sql.ts";
import type { Postmaster } from "./postmaster.ts";

/** How long PostgreSQL's own end of an immediate stop is waited for before it is killed. */
const killAfterMs = 30_000;

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** One stop of PostgreSQL that is under way; it can only become harder. */
export class StopRun {
  readonly #context: InstanceContext;
  readonly #postmaster: Postmaster;
  #steps: StopPlan["steps"];
  /** The hardest mode asked for so far beyond the plan's own pace. */
  #wanted: StopMode = "smart";
  #mode: StopMode = "smart";
  #escalated = deferred();
  #logged: Promise<void> = Promise.resolve();
  readonly done: Promise<void>;

  constructor(context: InstanceContext, postmaster: Postmaster, plan: StopPlan) {
    this.#context = context;
    this.#postmaster = postmaster;
    this.#steps = plan.steps;
    this.#wanted = plan.steps[0]?.mode ?? "fast";
    this.#mode = this.#wanted;
    this.done = this.#run(plan);
  }

  /** Resolves once the state of the stopped server is in the log. */
  get logged(): Promise<void> {
    return this.#logged;
  }

  get mode(): StopMode {
    return this.#mode;
  }

  /** Goes over to a harder mode at once. */
  escalate(mode: StopMode, reason: string): void {
    if (severity[mode] <= severity[this.#wanted] && severity[mode] <= severity[this.#mode]) return;
    this.#context.logger.info("Stopping PostgreSQL harder", { mode, reason });
    this.#wanted = mode;
    this.#escalated.resolve();
  }

  /** Takes the steps of another plan when it is the harder one, be it only by its time limit. */
  harden(plan: StopPlan, reason: string): void {
    const mode = severity[this.#wanted] > severity[this.#mode] ? this.#wanted : this.#mode;
    if (!isHarder(plan, { mode, limitMs: this.#limitOf(mode) })) return;
    this.#steps = plan.steps;
    this.#wanted = plan.steps[0]?.mode ?? "immediate";
    this.#context.logger.info("Stopping PostgreSQL harder", { mode: this.#wanted, reason });
    this.#escalated.resolve();
  }

  #limitOf(mode: StopMode): number | undefined {
    return this.#steps.find((step) => step.mode === mode)?.limitMs;
  }

  async #run(plan: StopPlan): Promise<void> {
    if (plan.checkpointMs > 0) await this.#checkpoint(plan.checkpointMs);
    for (let mode: StopMode | undefined = this.#wanted; mode && this.#postmaster.pid !== undefined; ) {
      this.#mode = mode;
      const limitMs = this.#limitOf(mode);
      this.#context.logger.info("Shutting down instance", { mode, limitMs: limitMs ?? null });
      const exited = this.#postmaster.exited();
      this.#postmaster.stop(mode);
      // From here on no new session is let in, so none of ours comes back.
      void closeLocalSessions(this.#context);
      const outcome = await this.#race(exited, limitMs ?? killAfterMs);
      if (outcome === "exited") break;
      mode = this.#next(mode, outcome === "escalated");
    }
    // Nobody waits for this: the lease is given back first.
    this.#logged = this.#context.data.logControl(this.#context.logger, "postmaster has exited");
  }

  #next(mode: StopMode, escalated: boolean): StopMode {
    if (mode === "immediate") {
      this.#context.logger.error("PostgreSQL does not end by an immediate stop and is killed");
      this.#postmaster.signal("SIGKILL");
      return "immediate";
    }
    if (escalated && severity[this.#wanted] >= severity[mode]) return this.#wanted;
    return mode === "smart" ? "fast" : "immediate";
  }

  async #race(exited: Promise<void>, limitMs: number): Promise<"exited" | "timeout" | "escalated"> {
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<"timeout">((resolve) => {
      timer = setTimeout(() => resolve("timeout"), Math.min(limitMs, 2_000_000_000));
    });
    const escalation = this.#escalated.promise.then(() => "escalated" as const);
    const outcome = await Promise.race([exited.then(() => "exited" as const), timeout, escalation]);
    clearTimeout(timer);
    if (outcome === "escalated") this.#escalated = deferred();
    return outcome;
  }

  /** Writes dirty pages while sessions still go on, so that the checkpoint at shutdown has little left. */
  async #checkpoint(limitMs: number): Promise<void> {
    const logger = this.#context.logger.child({ logger: "checkpoint_before_shutdown" });
    logger.info("Executing CHECKPOINT command before shutdown");
    const work = withSession(this.#context, "postgres", (session) => session.query("CHECKPOINT"), {
      unlimited: true,
    }).then(
      () => logger.info("Checkpoint completed successfully"),
      (error) => logger.warning("Checkpoint before shutdown failed", { error }),
    );
    await this.#race(work, limitMs);
  }
}
