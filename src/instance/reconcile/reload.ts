import { isReplicaCluster } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { planPendingRestart } from "../../plan/instance/pending-restart.ts";
import { configurationHashName } from "../../postgres/configuration.ts";
import { findDecreases, type PendingSetting } from "../../postgres/hot-standby.ts";
import type { InstanceContext } from "../instance-context.ts";
import type { Lifecycle } from "../lifecycle.ts";
import type { LocalSql } from "../local-sql.ts";
import type { Postmaster } from "../postmaster.ts";
import type { ClusterStatusWriter } from "./cluster-status.ts";

/** A reload is noticed by new sessions at once and by old ones with their next command. */
const hashPollMs = 20;
const hashLimitMs = 5_000;

/** Settings whose value in the files waits for a restart. */
export const pendingSettings = `
  SELECT s.name, s.setting AS running, coalesce(f.setting, s.boot_val) AS file
    FROM pg_settings s
    LEFT JOIN LATERAL (
      SELECT setting FROM pg_file_settings WHERE name = s.name ORDER BY seqno DESC LIMIT 1
    ) f ON true
   WHERE s.pending_restart`;

export interface PendingRestart {
  pending: boolean;
  decreases: PendingSetting[];
}

/** Reads which settings wait for a restart, and which sensitive ones get lower by it. */
export async function readPendingRestart(sql: {
  query(text: string): Promise<Record<string, unknown>[]>;
}): Promise<PendingRestart> {
  const rows = (await sql.query(pendingSettings)).map((row) => ({
    name: String(row["name"]),
    running: String(row["running"] ?? ""),
    file: String(row["file"] ?? ""),
  }));
  const lower = new Set<string>(findDecreases(rows));
  return { pending: rows.length > 0, decreases: rows.filter((row) => lower.has(row.name)) };
}

/** Loads the configuration on disk and waits until the server shows it. */
export async function reloadConfiguration(
  context: InstanceContext,
  postmaster: Postmaster,
  sql: LocalSql,
  sha256: string,
  signal: AbortSignal,
): Promise<void> {
  context.logger.info("Requesting configuration reload", { pgdata: context.paths.pgData });
  postmaster.reload();
  const end = context.clock.monotonicMs() + hashLimitMs;
  for (;;) {
    signal.throwIfAborted();
    const row = await sql.one("SELECT current_setting($1, true) AS hash", [configurationHashName]);
    if (row["hash"] === sha256) return;
    if (context.clock.monotonicMs() > end) {
      throw new Error(
        `PostgreSQL still shows configuration ${row["hash"] ?? "none"} instead of ${sha256} after a reload`,
      );
    }
    await context.clock.sleep(hashPollMs, signal);
  }
}

/** After a reload: restarts PostgreSQL or tells the operator what is left to do. True when it was restarted. */
export async function handlePendingRestart(
  context: InstanceContext,
  cluster: Cluster,
  deps: { sql: LocalSql; lifecycle: Lifecycle; status: ClusterStatusWriter; isPrimary: boolean; signal: AbortSignal },
): Promise<boolean> {
  const { pending, decreases } = await readPendingRestart(deps.sql);
  const designated = isReplicaCluster(cluster) && cluster.status?.targetPrimary === context.settings.podName;
  const action = planPendingRestart({
    pending,
    decrease: decreases.length > 0,
    actingPrimary: deps.isPrimary || designated,
    instances: cluster.spec.instances ?? 1,
    updateStrategy: cluster.spec.primaryUpdateStrategy === "supervised" ? "supervised" : "unsupervised",
    phase: cluster.status?.phase ?? "",
  });
  switch (action.kind) {
    case "none":
      return false;
    case "setPhase":
      await deps.status.setPhase(action.phase, action.reason, deps.signal);
      return false;
    case "restart":
      await deps.sql.close();
      await deps.lifecycle.restart(action.reason, deps.signal);
      await deps.status.setPhase(action.phase, action.reason, deps.signal);
      return true;
    default: {
      const never: never = action;
      throw new Error(`unknown action ${JSON.stringify(never)}`);
    }
  }
}
