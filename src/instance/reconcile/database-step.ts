import { followsSource, isReplicaCluster } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { phases } from "../../api/phases.ts";
import { hasImageDrift, runningImages } from "../../plan/instance/image-drift.ts";
import { resyncMs, soonMs } from "../../plan/instance/requeue.ts";
import { planReceiver } from "../../plan/instance/wal-receiver.ts";
import { protectAutoConf } from "../configuration-files.ts";
import { ManagedRolesStep } from "../declarative/managed-roles.ts";
import { TablespacesStep } from "../declarative/tablespaces.ts";
import type { InstanceContext } from "../instance-context.ts";
import type { Lifecycle } from "../lifecycle.ts";
import type { LocalSql } from "../local-sql.ts";
import type { Postmaster } from "../postmaster.ts";
import type { SecretReader } from "../secret-reader.ts";
import type { ClusterStatusWriter } from "./cluster-status.ts";
import { ExtensionStep } from "./extensions.ts";
import { FailoverQuorumStep } from "./failover-quorum.ts";
import { PasswordStep } from "./passwords.ts";
import { ensurePoolerAuth } from "./pooler-auth.ts";
import { handlePendingRestart, reloadConfiguration } from "./reload.ts";
import { ensureMetricsRole, ensureReplicationRole } from "./roles.ts";
import { reconcilePrimarySlots } from "./slots.ts";

export interface DatabaseStepOptions {
  context: InstanceContext;
  postmaster: Postmaster;
  lifecycle: Lifecycle;
  secrets: SecretReader;
  status: ClusterStatusWriter;
  sql: LocalSql;
}

/** How long after a change of the primary a standby is helped to find the new one. */
const hurryMs = 15_000;

/** The part of a pass that needs a server that answers and a settled role (reference: instance manager §4.1, steps 23 to 34). */
export class DatabaseStep {
  readonly #options: DatabaseStepOptions;
  readonly #passwords: PasswordStep;
  readonly #quorum: FailoverQuorumStep;
  readonly #extensions: ExtensionStep;
  readonly #managedRoles: ManagedRolesStep;
  readonly #tablespaces: TablespacesStep;
  /** Files changed that PostgreSQL has not loaded yet. */
  reloadNeeded = false;
  /** The replication role was seen to be right in this stay as primary. */
  #rolesEnsured = false;
  /** The primary that this standby follows, and until when its receiver is hurried. */
  #followed: { primary: string; until: number } | undefined;
  /** The images of which the settings that are loaded, or are about to be, know. */
  #images: readonly string[] | undefined;

  constructor(options: DatabaseStepOptions) {
    this.#options = options;
    this.#passwords = new PasswordStep(options.context, options.secrets);
    this.#quorum = new FailoverQuorumStep(options.context);
    this.#extensions = new ExtensionStep(options.context);
    this.#managedRoles = new ManagedRolesStep(options.context, options.secrets, options.status);
    this.#tablespaces = new TablespacesStep(options.context, options.status);
  }

  /** Forgets what was done as a primary: another one may change it meanwhile. */
  becameStandby(): void {
    this.#rolesEnsured = false;
    this.#passwords.forget();
    this.#extensions.forget();
  }

  /** Helps PostgreSQL to find its primary. True while it is worth looking again soon, as the primary has just changed. */
  async #hurryReceiver(cluster: Cluster): Promise<boolean> {
    const { context, postmaster } = this.#options;
    const current = cluster.status?.currentPrimary ?? "";
    if (current !== this.#followed?.primary) {
      this.#followed = { primary: current, until: context.clock.monotonicMs() + hurryMs };
    }
    const primaryChanged = context.clock.monotonicMs() <= this.#followed.until;
    // A receiver that connects is not in pg_stat_wal_receiver yet.
    const [receiver] = await this.#options.sql.query(
      `SELECT pid, extract(epoch FROM clock_timestamp() - backend_start)::float8 AS age,
         EXISTS (SELECT 1 FROM pg_stat_wal_receiver WHERE status = 'streaming') AS streaming
       FROM pg_stat_activity WHERE backend_type = 'walreceiver'`,
    );
    const age = receiver?.["age"];
    const streaming = receiver?.["streaming"] === true;
    const remedy = planReceiver({
      primaryChanged,
      streaming,
      ageSeconds: typeof age === "number" ? age : undefined,
    });
    if (remedy === "reload") postmaster.reload();
    if (remedy === "terminate") {
      context.logger.info("The WAL receiver is kept waiting; another one is started", { currentPrimary: current });
      await postmaster.endReceiver(Number(receiver?.["pid"]));
    }
    return primaryChanged && !streaming;
  }

  /** A former designated primary must not go on feeding its standbys; true when one was cut off. */
  async #dropStaleReplication(): Promise<boolean> {
    const pattern = `${this.#options.context.settings.clusterName.replace(/[\\%_]/g, "\\$&")}-%`;
    const rows = await this.#options.sql.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_replication WHERE application_name LIKE $1",
      [pattern],
    );
    return rows.length > 0;
  }

  /** Call it before the files of the instance are written. */
  async beforeFiles(cluster: Cluster, signal: AbortSignal): Promise<void> {
    this.#followImages(cluster);
    await this.#quorum.announce(cluster, signal);
  }

  /** Other images count as a change of the files, once for each time that they change. */
  #followImages(cluster: Cluster): void {
    const images = runningImages(cluster);
    if (!images) return;
    const isDrift = hasImageDrift(this.#images, images);
    if (isDrift) this.reloadNeeded = true;
    if (isDrift || !this.#images) {
      this.#options.context.logger.info("Detected running images", { runningImages: images });
    }
    this.#images = images;
  }

  async #reconcileStandby(cluster: Cluster, isCurrent: boolean): Promise<number> {
    // The designated primary of a replica cluster serves the standbys as a primary would.
    const retry =
      followsSource(cluster) &&
      isCurrent &&
      (await reconcilePrimarySlots(this.#options.context, cluster, this.#options.sql));
    const hurried = await this.#hurryReceiver(cluster);
    return hurried || retry ? soonMs / 2 : resyncMs;
  }

  /** Roles come first: they own the tablespaces. False when something is not yet as it is wanted. */
  async #reconcileManaged(cluster: Cluster, signal: AbortSignal): Promise<boolean> {
    const roles = await this.#managedRoles.reconcile(cluster, signal);
    const tablespaces = await this.#tablespaces.reconcile(cluster, signal);
    return roles && tablespaces;
  }

  /** Gives the pause before the next pass, in milliseconds. */
  async reconcile(cluster: Cluster, sha256: string, signal: AbortSignal): Promise<number> {
    const { context, lifecycle, postmaster, status } = this.#options;
    const isPrimary = (await context.data.role()) === "primary";
    const isCurrent = cluster.status?.currentPrimary === context.settings.podName;
    if (isCurrent && cluster.status?.phase === phases.inPlacePrimaryRestart) {
      await this.#options.sql.close();
      await lifecycle.restart("the phase asks for a restart in place", signal);
      await status.setPhase(phases.healthy, "Primary instance restarted in-place", signal);
      this.reloadNeeded = false;
      return 0;
    }
    if (this.reloadNeeded) {
      await this.#quorum.clear(cluster, signal);
      await reloadConfiguration(context, postmaster, this.#options.sql, sha256, signal);
      this.reloadNeeded = false;
      const deps = { sql: this.#options.sql, lifecycle, status, isPrimary, signal };
      if (await handlePendingRestart(context, cluster, deps)) return 0;
    }
    await this.#quorum.update(cluster, this.#options.sql, signal);
    await protectAutoConf(context, cluster);
    if (isReplicaCluster(cluster) && !isCurrent && (await this.#dropStaleReplication())) return 5 * soonMs;
    if (!isPrimary) return this.#reconcileStandby(cluster, isCurrent);
    if (!this.#rolesEnsured) {
      await ensureReplicationRole(context, signal);
      this.#rolesEnsured = true;
    }
    // Whoever drops the exporter's role, or gives it more rights, gets it back as it was.
    await ensureMetricsRole(context, signal);
    const retry = await reconcilePrimarySlots(context, cluster, this.#options.sql);
    const managed = !isCurrent || isReplicaCluster(cluster) || (await this.#reconcileManaged(cluster, signal));
    if (isCurrent) await this.#passwords.reconcile(cluster, signal);
    await this.#extensions.reconcile(cluster, this.#options.sql, signal);
    await ensurePoolerAuth(context, cluster, signal);
    if (retry) return soonMs;
    return managed ? resyncMs : 5 * soonMs;
  }
}
