import { pendingPromotionToken } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { parseTargetPrimary } from "../../api/pg-status.ts";
import { resyncMs, soonMs } from "../../plan/instance/requeue.ts";
import type { RoleDecision } from "../../plan/instance/role.ts";
import type { InstanceContext } from "../instance-context.ts";
import type { VolumeWatch } from "../isolation/volume-watch.ts";
import { primariesOf } from "../lease/candidacy.ts";
import type { Lifecycle } from "../lifecycle.ts";
import { type LocalSql, withSession } from "../local-sql.ts";
import type { Postmaster } from "../postmaster.ts";
import type { PrimaryLease } from "../primary-lease.ts";
import type { ClusterStatusWriter } from "./cluster-status.ts";
import { dropClientSessions, promoteServer, waitForReceiverDown } from "./promote.ts";
import { checkPromotion } from "./promotion-check.ts";
import { checkPendingToken, recordToken, reportTokenCheck, settleDesignated } from "./replica-cluster.ts";
import { decideRole } from "./role-facts.ts";

export interface RoleStepOptions {
  context: InstanceContext;
  postmaster: Postmaster;
  lifecycle: Lifecycle;
  lease: PrimaryLease;
  status: ClusterStatusWriter;
  volumes: Pick<VolumeWatch, "stake" | "silence">;
  sql: LocalSql;
  /** This server was found to be a standby. */
  becameStandby: () => void;
}

/** Decides whether this instance is the primary or a standby, and makes a running server that. */
export class RoleStep {
  readonly #options: RoleStepOptions;
  /** A promotion was asked for, which can't be taken back, and the server was not seen out of recovery since. */
  #promotionAsked = false;
  #lastWait = "";
  /** Ends with the process; what can't be taken back hangs on it instead of on the pass. */
  life = new AbortController().signal;

  constructor(options: RoleStepOptions) {
    this.#options = options;
  }

  decide(cluster: Cluster, signal: AbortSignal): Promise<RoleDecision> {
    return decideRole(this.#options, cluster, signal);
  }

  /** The server is down, and a promotion with it. */
  serverDown(): void {
    this.#promotionAsked = false;
  }

  /** Beside a pass, which may hang: an instance that is no longer wanted as primary stops whatever the pass waits for. */
  async lookAside(cluster: Cluster): Promise<void> {
    const role = await this.decide(cluster, this.life);
    if (this.#options.lifecycle.terminating) return;
    if (role.kind === "stop") this.stopOldPrimary(role);
    else if (role.kind === "standby" && this.#promotionAsked) this.#stopPromotion(role.reason);
  }

  /** Who is not to be primary neither holds the lease nor waits for it, unless PostgreSQL may write. */
  async standDown(role: RoleDecision): Promise<void> {
    const { context, lease, lifecycle, postmaster } = this.#options;
    if (role.kind === "primary" || role.kind === "promote" || this.#promotionAsked) return;
    // The lease in this pod's name may be the only proof that its promotion was the last one.
    const target = parseTargetPrimary(context.state.cluster?.status?.targetPrimary);
    if (role.kind === "wait" && target.kind === "instance" && target.name === context.settings.podName) return;
    const mayRun = postmaster.pid !== undefined || lifecycle.busy;
    if (mayRun && context.data.knownRole !== "standby") return;
    await lease.standDown();
  }

  /** Holds the Lease, or waits for it, as long as the Cluster says what this one says; from before it is taken the launcher probes the volumes, for as long as it is held. */
  async holdLease(cluster: Cluster, signal: AbortSignal): Promise<boolean> {
    const { volumes } = this.#options;
    await volumes.stake("claim", true);
    try {
      const problem = await this.#claim(cluster, signal);
      if (problem !== null) this.logWait(problem);
      return problem === null;
    } finally {
      await volumes.stake("claim", false);
    }
  }

  async #claim(cluster: Cluster, signal: AbortSignal): Promise<string | null> {
    const { lease, volumes } = this.#options;
    const silence = await volumes.silence();
    if (silence !== null) return `the primary lease is left to others: ${silence}`;
    const result = await lease.acquire(signal, primariesOf(cluster));
    return result.kind === "held" ? null : `the primary lease is not held: ${result.reason}`;
  }

  /** Logs what the instance waits for, when that is something else than before. */
  logWait(reason: string): void {
    if (reason !== this.#lastWait) this.#options.context.logger.info("Waiting", { reason });
    this.#lastWait = reason;
  }

  /** Stops a primary that is to be none; gives the pause before the next pass, in milliseconds. */
  stopOldPrimary(role: RoleDecision & { kind: "stop" }): number {
    const { context, lifecycle } = this.#options;
    context.logger.info("This is an old primary instance, shutting it down", { reason: role.reason });
    lifecycle.stepDown(role.urgent ? "failover" : "switchover").catch((error: unknown) => {
      context.logger.error("This old primary could not step down in order", { error });
      void lifecycle.terminate("error", 1);
    });
    return resyncMs;
  }

  /** A promotion that is not wanted any more ends only with the server; the lease goes back after it. */
  #stopPromotion(reason: string): number {
    this.#options.context.logger.info("The promotion under way is not wanted any more, stopping the instance", {
      reason,
    });
    void this.#options.lifecycle.terminate("failover", 0);
    return resyncMs;
  }

  /** Becomes or stays what the Cluster wants; a number of milliseconds ends the pass. */
  async become(cluster: Cluster, signal: AbortSignal): Promise<number | undefined> {
    const { context, lease, status, sql } = this.#options;
    const role = await this.decide(cluster, signal);
    if (this.#promotionAsked && role.kind !== "promote" && role.kind !== "stop") {
      const row = await sql.one("SELECT pg_is_in_recovery() AS recovering");
      if (row["recovering"] !== false) return role.kind === "primary" ? soonMs : this.#stopPromotion(role.reason);
      this.#promotionAsked = false;
      return 0;
    }
    switch (role.kind) {
      case "stop":
        return this.stopOldPrimary(role);
      case "wait":
      case "waitForPrimary":
      case "demote":
        this.logWait(role.reason);
        return soonMs;
      case "standby":
        this.#options.becameStandby();
        await this.standDown(role);
        if (role.designated) await settleDesignated(this.#options, cluster, signal);
        return undefined;
      case "promote":
        return this.#promote(cluster, role.waitForReceiver, signal);
      case "primary":
        if (!(await this.holdLease(cluster, signal))) return lease.timings.retryPeriodMs;
        if (role.claimCurrent) {
          context.logger.info("Claiming to be the current primary", { reason: role.reason });
          await status.claimPrimary(() => lease.held, signal);
        }
        await recordToken(status, cluster, signal);
        return undefined;
    }
  }

  /** Whether the point that a promotion token names is the one that was replayed. */
  async #mayPromote(cluster: Cluster, signal: AbortSignal): Promise<boolean> {
    const check = await checkPendingToken(this.#options.context, cluster, this.#options.sql);
    if (check.kind === "promote") return true;
    this.logWait(`the promotion token does not let this instance be promoted: ${check.reason}`);
    await reportTokenCheck(this.#options, check, signal);
    return false;
  }

  async #promote(cluster: Cluster, waitForReceiver: boolean, signal: AbortSignal): Promise<number> {
    const { context, lease, status, lifecycle, sql } = this.#options;
    if (!(await this.#mayPromote(cluster, signal))) return soonMs;
    if (!(await this.holdLease(cluster, signal))) return lease.timings.retryPeriodMs;
    // WAL of a source that was not stopped, as the token has it, may have come in while the lease was waited for.
    if (!(await this.#mayPromote(cluster, signal))) return soonMs;
    if (waitForReceiver && !(await waitForReceiverDown(context, sql, signal))) return soonMs;
    if (waitForReceiver) {
      const tenure = lease.right?.transitions;
      const check = await checkPromotion(this.#options, cluster, signal);
      // Answers are worth something only for the tenure in which they were given.
      if (!lease.held || lease.right?.transitions !== tenure) return 0;
      if (check.kind === "decline") {
        // The write moves the target, which ends the pass: its own end must not keep it from being told.
        await status.declineTarget(check.reason, this.life);
        return 0;
      }
    }
    const target = parseTargetPrimary(context.state.cluster?.status?.targetPrimary);
    const wanted = target.kind === "instance" && target.name === context.settings.podName;
    // Both may have changed while the receiver was waited for.
    if (!wanted || !lease.held || lifecycle.terminating) return 0;
    this.#promotionAsked = true;
    sql.follow(this.life);
    await promoteServer(context, sql, {
      timeoutSeconds: cluster.spec.postgresql?.promotionTimeout,
      signal: this.life,
    });
    this.#promotionAsked = false;
    await dropClientSessions(sql);
    await status.claimPrimary(() => lease.held, signal, pendingPromotionToken(cluster));
    // The old primary's rewind waits for this checkpoint; clients and further passes do not.
    withSession(context, "postgres", (session) => session.query("CHECKPOINT"), { unlimited: true }).catch((error) =>
      context.logger.warning("Checkpoint after promotion failed", { error }),
    );
    return 0;
  }
}
