import { exitCodeDiskFull } from "../../api/constants.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { isFenced, parseFencing } from "../../api/markers.ts";
import type { ManagerIdentity } from "../../plan/instance/definition.ts";
import { planFencing } from "../../plan/instance/fencing.ts";
import { errorDelayMs, heldBackMs, resyncMs, soonMs } from "../../plan/instance/requeue.ts";
import { withLogFields } from "../../runtime/log-scope.ts";
import { dropStandbyNote, keepStandbyNote } from "../cached-start.ts";
import { missingCertificates, preloadServerCertificate } from "../certificates.ts";
import { protectAutoConf } from "../configuration-files.ts";
import { isDiskFull } from "../disk-full.ts";
import type { InstanceContext } from "../instance-context.ts";
import { mightBeUnavailable } from "../instance-state.ts";
import type { VolumeWatch } from "../isolation/volume-watch.ts";
import type { Lifecycle } from "../lifecycle.ts";
import { LocalSql, passLimits } from "../local-sql.ts";
import { passFields } from "../pass-fields.ts";
import type { Postmaster } from "../postmaster.ts";
import type { PrimaryLease } from "../primary-lease.ts";
import type { SecretReader } from "../secret-reader.ts";
import type { ClusterStatusWriter } from "./cluster-status.ts";
import { DatabaseStep } from "./database-step.ts";
import { type Definition, DefinitionGuard } from "./definition-guard.ts";
import { demote } from "./demote.ts";
import { type FilesResult, refreshExternalFiles, refreshFiles } from "./files-step.ts";
import { demoteWhileFenced, settleDesignated } from "./replica-cluster.ts";
import { finishClone } from "./rewind.ts";
import { RoleStep } from "./role-step.ts";
import { moveWalToVolume } from "./wal-volume.ts";

export interface ReconcilerOptions {
  context: InstanceContext;
  postmaster: Postmaster;
  lifecycle: Lifecycle;
  lease: PrimaryLease;
  secrets: SecretReader;
  status: ClusterStatusWriter;
  volumes: Pick<VolumeWatch, "stake" | "silence">;
  podUid: string;
  manager: ManagerIdentity;
}

/** Pause before the next pass, in milliseconds; events bring it forward. */
type Requeue = number;

/** Brings PostgreSQL and its files in line with the Cluster, pass by pass (reference: instance manager §4.1). */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #sql: LocalSql;
  readonly #database: DatabaseStep;
  readonly #role: RoleStep;
  readonly #guard: DefinitionGuard;
  #initialized = false;
  /** Passes in a row that failed. */
  #failures = 0;
  #woken = false;
  #wake: (() => void) | undefined;
  /** Ends the waits of the pass under way when the Cluster wants something else. */
  #pass = new AbortController();
  #passTarget: string | undefined;
  /** Called after each look at the files, for those who use the certificates themselves. */
  onFilesRefreshed: () => void = () => undefined;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
    this.#sql = new LocalSql(options.context, passLimits);
    this.#database = new DatabaseStep({ ...options, sql: this.#sql });
    const becameStandby = () => this.#database.becameStandby();
    this.#role = new RoleStep({ ...options, sql: this.#sql, becameStandby });
    this.#guard = new DefinitionGuard(options.manager, options.context.logger);
  }

  /** Asks for a pass now. */
  wake(): void {
    this.#woken = true;
    this.#wake?.();
    const target = this.#options.context.state.cluster?.status?.targetPrimary ?? "";
    if (this.#passTarget !== undefined && target !== this.#passTarget) {
      this.#pass.abort(new Error("the target primary changed"));
      void withLogFields(this.#logFields(), () => this.#lookAside());
    }
  }

  async #lookAside(): Promise<void> {
    const { context } = this.#options;
    const { cluster } = context.state;
    if (!cluster || !this.#initialized) return;
    try {
      await this.#role.lookAside(this.#guard.judge(cluster).cluster);
    } catch (error) {
      context.logger.warning("The role could not be looked at beside the pass under way", { error });
    }
  }

  /** PostgreSQL ran before this manager came up: its files are in use and need no preparation. */
  adopted(): void {
    this.#initialized = true;
    this.#database.reloadNeeded = true;
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#role.life = signal;
    while (!signal.aborted) {
      this.#woken = false;
      this.#pass = new AbortController();
      this.#passTarget = this.#options.context.state.cluster?.status?.targetPrimary ?? "";
      const passSignal = AbortSignal.any([signal, this.#pass.signal]);
      this.#sql.follow(passSignal);
      const requeueMs = await withLogFields(this.#logFields(), () => this.#attempt(passSignal, signal));
      if (requeueMs !== undefined && !this.#woken) await this.#sleep(Math.min(requeueMs, resyncMs), signal);
    }
    await this.#sql.close();
  }

  #logFields(): Record<string, unknown> {
    const { settings } = this.#options.context;
    return passFields("Cluster", { namespace: settings.namespace, name: settings.clusterName }, settings);
  }

  /** One pass, and what is told of its failure; `undefined` = another one at once, unless the process ends. */
  async #attempt(signal: AbortSignal, life: AbortSignal): Promise<Requeue | undefined> {
    const { logger } = this.#options.context;
    try {
      const requeueMs = await this.#reconcile(signal);
      this.#failures = 0;
      return requeueMs;
    } catch (error) {
      if (life.aborted) return undefined;
      if (signal.aborted) {
        logger.info("The pass starts over", { reason: signal.reason });
        return undefined;
      }
      this.#failures += 1;
      const requeueMs = errorDelayMs(this.#failures);
      logger.error("Reconciler error", { error, retryAfterMs: requeueMs });
      this.#endWithoutSpace(error);
      return requeueMs;
    } finally {
      this.#passTarget = undefined;
    }
  }

  /** Without space PostgreSQL does not come up; the exit code tells the operator that the volume has to grow. */
  #endWithoutSpace(error: unknown): void {
    const { context, lifecycle, postmaster } = this.#options;
    if (this.#initialized || postmaster.pid !== undefined || !isDiskFull(error)) return;
    context.logger.error("Not enough disk space to prepare the data folder; enlarge its volume", {
      folder: context.paths.pgData,
    });
    void lifecycle.terminate("error", exitCodeDiskFull);
  }

  #sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        this.#wake = undefined;
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#wake = done;
      signal.addEventListener("abort", done, { once: true });
    });
  }

  async #reconcile(signal: AbortSignal): Promise<Requeue> {
    const { context, lifecycle, postmaster, secrets } = this.#options;
    const newest = context.state.cluster;
    // What waits for a disk that hangs is not there for anything else; the volume watch wakes this once the disk is back.
    if (!newest || lifecycle.terminating || context.state.silentVolumes) return resyncMs;
    secrets.observe(newest);
    const definition = this.#guard.judge(newest);
    const { cluster, heldBack } = definition;
    if (!heldBack) await this.#clearArchiveMarker(cluster);

    if (!heldBack && !this.#initialized && postmaster.pid === undefined) await finishClone(context);
    // Before the files: the sooner a moved target is seen, the shorter nobody takes writes; and a full disk stops neither.
    if (this.#initialized) {
      const early = await this.#role.decide(cluster, signal);
      if (early.kind === "stop") return this.#role.stopOldPrimary(early);
      await this.#role.standDown(early);
      const fencing = await this.#fencing(cluster, { heldBack });
      if (fencing !== undefined) return fencing;
      if (!heldBack) await demoteWhileFenced(this.#options, cluster, early, signal);
    }
    if (heldBack) return this.#keepAsItIs(definition, signal);
    // A server that is coming up may not have read its files yet: what they were raised to for its start stays until it is up.
    const accepting = this.#initialized && (await postmaster.isAccepting());
    const coming = postmaster.pid !== undefined && !accepting;
    const files = await this.#refreshFiles(cluster, { forStart: !this.#initialized || coming, signal });
    if (!this.#initialized) return this.#initialize(cluster, signal);

    if (mightBeUnavailable(context.state)) return soonMs;
    if (postmaster.pid === undefined) {
      this.#role.serverDown();
      // Down, and nobody is about to change that: everything is looked at as if the container had just started.
      if (!lifecycle.busy) this.#initialized = false;
      return lifecycle.busy ? soonMs : 0;
    }
    if (!accepting) return soonMs;
    const role = await this.#role.become(cluster, signal);
    if (role !== undefined) return role;
    if (files.kind === "diskFull") throw files.error;
    const requeueMs = await this.#database.reconcile(cluster, files.sha256, signal);
    await refreshExternalFiles(context, cluster, secrets, { which: "others", signal });
    if (context.data.knownRole === "standby") await keepStandbyNote(context, this.#options.podUid);
    else await dropStandbyNote(context);
    return requeueMs;
  }

  /**
   * A definition that nobody admitted is not acted by: files stay as they are, and nothing is started, loaded or restarted. What
   * the operator asks for by the status does not wait, or one wrong word in a definition would leave a cluster without a primary:
   * the former one has stepped down, was fenced or has died, and its successor is promoted, by the definition before. Where none
   * is known, a definition that only seems to end a replica cluster could promote its designated primary, which nobody can undo;
   * there the promotion waits too. The Lease is kept and renewed beside all passes.
   */
  async #keepAsItIs({ cluster, isAdmitted }: Definition, signal: AbortSignal): Promise<Requeue> {
    const { context, postmaster, secrets } = this.#options;
    // Probes over TLS are answered whatever the definition is worth.
    await preloadServerCertificate(context, cluster, secrets, signal);
    this.onFilesRefreshed();
    const isRunning = this.#initialized && !mightBeUnavailable(context.state) && (await postmaster.isAccepting());
    const requeueMs = isAdmitted && isRunning ? await this.#role.become(cluster, signal) : undefined;
    return Math.min(requeueMs ?? heldBackMs, heldBackMs);
  }

  /** A disk that is full keeps PostgreSQL from its first start, but a running one from nothing that needs no files. */
  async #refreshFiles(
    cluster: Cluster,
    { forStart, signal }: { forStart: boolean; signal: AbortSignal },
  ): Promise<({ kind: "done" } & FilesResult) | { kind: "diskFull"; error: unknown }> {
    const { context, secrets } = this.#options;
    await this.#database.beforeFiles(cluster, signal);
    try {
      const result = await refreshFiles(context, cluster, secrets, { beforeFirstStart: forStart, signal });
      this.onFilesRefreshed();
      if (result.changed) this.#database.reloadNeeded = true;
      return { kind: "done", ...result };
    } catch (error) {
      if (!this.#initialized || !isDiskFull(error)) throw error;
      return { kind: "diskFull", error };
    }
  }

  async #clearArchiveMarker(cluster: Cluster): Promise<void> {
    const { files, paths } = this.#options.context;
    const archiving = cluster.status?.conditions?.find((condition) => condition.type === "ContinuousArchiving");
    if (archiving?.status === "True") await files.remove(paths.checkEmptyArchive);
  }

  /** First passes of this life of the manager: prepares PGDATA and starts PostgreSQL. */
  async #initialize(cluster: Cluster, signal: AbortSignal): Promise<Requeue> {
    const { context, lease, lifecycle, status } = this.#options;
    const missing = await missingCertificates(context);
    if (missing.length > 0) {
      this.#role.logWait(
        `certificates are missing: ${missing.join(", ")}; their Secrets are named in status.certificates`,
      );
      return soonMs;
    }
    await moveWalToVolume(context);
    const role = await this.#role.decide(cluster, signal);
    switch (role.kind) {
      case "wait":
      case "waitForPrimary":
        this.#role.logWait(role.reason);
        await this.#role.standDown(role);
        return soonMs;
      case "demote":
        await this.#role.standDown(role);
        await demote(context, cluster, { rewind: role.rewind, signal });
        // The files of a standby differ from those of a primary.
        return 0;
      case "stop":
        return this.#role.stopOldPrimary(role);
      case "standby":
        if (role.designated) await settleDesignated(this.#options, cluster, signal);
        break;
      case "primary":
      case "promote":
        break;
      default: {
        const never: never = role;
        throw new Error(`unknown role ${JSON.stringify(never)}`);
      }
    }
    await this.#prepareFolders(cluster);
    context.state.fenced = isFenced(parseFencing(cluster), context.settings.podName);
    if (context.state.fenced) {
      await dropStandbyNote(context);
    } else {
      if (role.kind === "primary" && !(await this.#role.holdLease(cluster, signal))) return lease.timings.retryPeriodMs;
      // After the lease: once there is a current primary, a lease without a history can't be claimed freely any more.
      if (role.kind === "primary" && role.claimCurrent) await status.claimPrimary(() => lease.held, signal);
      if (!(await lifecycle.start())) return soonMs;
    }
    this.#initialized = true;
    this.#database.reloadNeeded = false;
    return soonMs;
  }

  async #prepareFolders(cluster: Cluster): Promise<void> {
    const { files, settings } = this.#options.context;
    for (const tablespace of cluster.spec.tablespaces ?? []) {
      const mount = `${settings.tablespaces}/${tablespace.name}`;
      if (await files.exists(mount)) await files.makeDirectory(`${mount}/data`, 0o700);
    }
    await protectAutoConf(this.#options.context, cluster);
  }

  /** Follows the fencing annotation; a number ends the pass. What is held back cannot be started, so its fence stays. */
  async #fencing(cluster: Cluster, { heldBack }: { heldBack: boolean }): Promise<Requeue | undefined> {
    const { context, lifecycle } = this.#options;
    const annotated = isFenced(parseFencing(cluster), context.settings.podName);
    switch (planFencing({ annotated, fenced: context.state.fenced })) {
      case "none":
        return undefined;
      case "fence":
        void dropStandbyNote(context);
        await this.#sql.close();
        await lifecycle.fence();
        return resyncMs;
      case "unfence":
        if (heldBack) return heldBackMs;
        lifecycle.unfence();
        // What lies in PGDATA may be out of date by now: role, lease and a demotion come first, as in a fresh container.
        this.#initialized = false;
        return 0;
    }
  }
}
