import { request as httpsRequest } from "node:https";
import { ports } from "../../api/constants.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { parseQuantity } from "../../api/quantity.ts";
import { resources } from "../../kube/resources.ts";
import {
  checkStreaming,
  formatProbeAnswer,
  type ProbeAnswer,
  type ProbeKind,
  planLiveness,
  planProbeShortcut,
} from "../../plan/instance/probes.ts";
import { lookForDataDamage } from "../data-check.ts";
import type { InstanceContext } from "../instance-context.ts";
import { mightBeUnavailable } from "../instance-state.ts";
import type { LocalSql } from "../local-sql.ts";
import type { Postmaster } from "../postmaster.ts";

/** Longest wait for the API server in a probe. */
const apiLimitMs = 500;

const streamingFacts = `
  SELECT pg_is_in_recovery() AS recovering,
         current_setting('primary_conninfo', true) AS conninfo,
         (SELECT (latest_end_lsn - pg_last_wal_replay_lsn())::text FROM pg_stat_wal_receiver) AS lag,
         (SELECT latest_end_time::text FROM pg_stat_wal_receiver) AS end_time`;

/** Answers the kubelet's probes. */
export class ProbeChecks {
  readonly #context: InstanceContext;
  readonly #postmaster: Postmaster;
  readonly #sql: LocalSql;
  /** Called when liveness finds this primary alone. */
  readonly #onIsolated: (isolated: boolean) => void;

  constructor(
    context: InstanceContext,
    postmaster: Postmaster,
    sql: LocalSql,
    onIsolated: (isolated: boolean) => void,
  ) {
    this.#context = context;
    this.#postmaster = postmaster;
    this.#sql = sql;
    this.#onIsolated = onIsolated;
  }

  async probe(kind: ProbeKind): Promise<ProbeAnswer> {
    const shortcut = planProbeShortcut({
      kind,
      mightBeUnavailable: mightBeUnavailable(this.#context.state),
      rewinding: this.#context.state.rewinding,
      postmasterRunning: this.#postmaster.pid !== undefined,
    });
    if (shortcut) return shortcut;
    const cluster = this.#context.state.cluster;
    const probe = kind === "startup" ? cluster?.spec.probes?.startup : cluster?.spec.probes?.readiness;
    const problem = await this.#check(probe?.type ?? "pg_isready", probe?.maximumLag);
    // Only readiness: a new container would have the same files.
    const damage = problem === undefined && kind === "readiness" ? await lookForDataDamage(this.#context) : undefined;
    return formatProbeAnswer(kind, problem ?? damage);
  }

  async #check(strategy: string, maximumLag: number | string | undefined): Promise<string | undefined> {
    if (strategy !== "query" && strategy !== "streaming") {
      return (await this.#postmaster.isAccepting()) ? undefined : "the server does not accept connections";
    }
    try {
      if (strategy === "query") {
        await this.#sql.query("SELECT 1");
        return undefined;
      }
      const row = await this.#sql.one(streamingFacts);
      const limit = maximumLag === undefined ? undefined : parseQuantity(String(maximumLag));
      return checkStreaming({
        isPrimary: row["recovering"] === false,
        hasPrimaryConninfo: Boolean(row["conninfo"]),
        lagBytes: typeof row["lag"] === "string" ? BigInt(row["lag"]) : undefined,
        // Quantities are kept in billionths.
        maximumLagBytes: limit === undefined ? undefined : limit / 1_000_000_000n,
        latestEndTime: typeof row["end_time"] === "string" ? row["end_time"] : undefined,
      });
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  async liveness(): Promise<ProbeAnswer> {
    const { state, data } = this.#context;
    const isPrimary = state.silentVolumes
      ? undefined
      : await data.role().then(
          (role) => role === "primary",
          () => undefined,
        );
    const cluster = state.cluster;
    const apiReachable = isPrimary === true ? await this.#apiReachable() : true;
    const isolation = cluster?.spec.probes?.liveness?.isolationCheck;
    const view = {
      isPrimary,
      apiReachable,
      clusterKnown: cluster !== undefined,
      isolationCheck: isolation?.enabled ?? true,
      instances: cluster?.spec.instances ?? 1,
    };
    let decision = planLiveness({ ...view, peers: undefined });
    if (decision.kind === "askPeers" && cluster) {
      const peers = await this.#askPeers(
        cluster,
        isolation?.connectionTimeout ?? 1_000,
        isolation?.requestTimeout ?? 1_000,
      );
      decision = planLiveness({ ...view, peers });
    }
    if (decision.kind === "askPeers") return { status: 200, body: "OK" };
    if (decision.isolated !== state.isolated) this.#onIsolated(decision.isolated);
    return decision.answer;
  }

  async #apiReachable(): Promise<boolean> {
    const { kube, settings } = this.#context;
    try {
      const key = { namespace: settings.namespace, name: settings.clusterName };
      await kube.get(resources.clusters, key, { timeoutMs: apiLimitMs, signal: AbortSignal.timeout(apiLimitMs) });
      return true;
    } catch {
      return false;
    }
  }

  async #askPeers(
    cluster: Cluster,
    connectionTimeoutMs: number,
    requestTimeoutMs: number,
  ): Promise<{ name: string; reachable: boolean }[]> {
    const ca = await this.#context.files.read(`${this.#context.paths.certificates}/server-ca.crt`);
    const peers = Object.entries(cluster.status?.instancesReportedState ?? {}).filter(
      ([name, reported]) => name !== this.#context.settings.podName && reported.ip,
    );
    const timeoutMs = connectionTimeoutMs + requestTimeoutMs;
    return Promise.all(
      peers.map(async ([name, reported]) => ({ name, reachable: await pingPeer(reported.ip ?? "", ca, timeoutMs) })),
    );
  }
}

/** Whether a peer's manager answers at all; any answer over a chain of our own authority counts. */
function pingPeer(ip: string, ca: string | undefined, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const request = httpsRequest(
      {
        host: ip,
        port: ports.status,
        path: "/failsafe",
        method: "GET",
        minVersion: "TLSv1.3",
        agent: false,
        ...(ca === undefined ? {} : { ca }),
        checkServerIdentity: () => undefined,
        signal: AbortSignal.timeout(timeoutMs),
      },
      (response) => {
        response.resume();
        resolve(true);
      },
    );
    request.on("error", () => resolve(false));
    request.end();
  });
}
