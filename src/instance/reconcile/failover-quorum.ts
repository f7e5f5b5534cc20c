import type { Cluster } from "../../api/generated/cluster.ts";
import type { FailoverQuorum } from "../../api/generated/failoverquorum.ts";
import { annotations } from "../../api/labels.ts";
import { parseGoBoolean } from "../../api/markers.ts";
import { jsonEqual } from "../../kube/merge-patch.ts";
import { patchStatus } from "../../kube/patch-status.ts";
import { resources } from "../../kube/resources.ts";
import { planFailoverQuorum } from "../../plan/instance/failover-quorum.ts";
import { isKubeError } from "../../ports/kube-api.ts";
import { formatSettings } from "../../postgres/configuration.ts";
import {
  formatSynchronousMetadata,
  parseSynchronousMetadata,
  planSynchronousStandbys,
} from "../../postgres/synchronous.ts";
import type { InstanceContext } from "../instance-context.ts";
import type { LocalSql } from "../local-sql.ts";

/** Setting in which PostgreSQL keeps the list for us. */
const metadataSetting = "cnpg.synchronous_standby_names_metadata";

function isActive(cluster: Cluster): boolean {
  const synchronous = cluster.spec.postgresql?.synchronous;
  const annotated = parseGoBoolean(cluster.metadata.annotations?.[annotations.failoverQuorum]);
  return synchronous !== undefined && (annotated ?? synchronous.failoverQuorum ?? false);
}

/** Tells the operator which standbys commits wait for, as PostgreSQL has it loaded (reference: instance manager §4.6). */
export class FailoverQuorumStep {
  readonly #context: InstanceContext;

  constructor(context: InstanceContext) {
    this.#context = context;
  }

  #view(cluster: Cluster) {
    const me = this.#context.settings.podName;
    const { currentPrimary, targetPrimary } = cluster.status ?? {};
    return { me, settledPrimary: currentPrimary === me && targetPrimary === me, active: isActive(cluster) };
  }

  /**
   * Before files are written that name other standbys: from then on PostgreSQL may load them at any moment, by a restart of its own
   * for one, and no record is true until it was asked.
   */
  async announce(cluster: Cluster, signal: AbortSignal): Promise<void> {
    const { settledPrimary, active } = this.#view(cluster);
    if (!settledPrimary || !active) return;
    const standbys = planSynchronousStandbys(cluster);
    const text = (await this.#context.files.read(this.#context.paths.customConf)) ?? "";
    const written = text.split("\n").find((line) => line.startsWith(`${metadataSetting} = `)) ?? "";
    const wanted = standbys
      ? formatSettings(new Map([[metadataSetting, formatSynchronousMetadata(standbys)]])).trimEnd()
      : "";
    if (written !== wanted) await this.clear(cluster, signal);
  }

  /** Before a reload: until the new list is loaded nobody can tell which standbys are safe. */
  async clear(cluster: Cluster, signal: AbortSignal): Promise<void> {
    const wanted = planFailoverQuorum({ ...this.#view(cluster), loaded: undefined });
    if (wanted) await this.#write(wanted, signal);
  }

  async update(cluster: Cluster, sql: LocalSql, signal: AbortSignal): Promise<void> {
    const view = this.#view(cluster);
    if (!view.settledPrimary || !view.active) return;
    const row = await sql.one(`SELECT current_setting('${metadataSetting}', true) AS metadata`);
    const loaded = parseSynchronousMetadata(String(row["metadata"] ?? ""));
    const wanted = planFailoverQuorum({ ...view, loaded });
    if (wanted) await this.#write(wanted, signal);
  }

  /** Looks at the object itself: it may have been made anew, or another primary may have written it since. */
  async #write(wanted: NonNullable<FailoverQuorum["status"]>, signal: AbortSignal): Promise<void> {
    const { kube, settings } = this.#context;
    const key = { namespace: settings.namespace, name: settings.clusterName };
    const change = (current: FailoverQuorum) =>
      jsonEqual(current.status ?? {}, wanted) ? undefined : { ...current, status: wanted };
    try {
      await patchStatus(kube, resources.failoverQuorums, key, change, { signal });
    } catch (error) {
      // The operator makes the object when the check is turned on; without it a failover is blocked anyway.
      if (!isKubeError(error, "notFound")) throw error;
    }
  }
}
