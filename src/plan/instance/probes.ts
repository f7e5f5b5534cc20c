/** Outcome of a probe as the kubelet sees it. */
export interface ProbeAnswer {
  status: 200 | 500;
  body: string;
}

const ok: ProbeAnswer = { status: 200, body: "OK" };

/** What liveness is decided from. */
export interface LivenessView {
  /** Role by files; `undefined` when it can't be told. */
  isPrimary: boolean | undefined;
  /** Whether the Cluster could be read from the API server just now. */
  apiReachable: boolean;
  /** Whether a Cluster was ever read. */
  clusterKnown: boolean;
  isolationCheck: boolean;
  instances: number;
  /** Other instances by name, and whether each answered; `undefined` = not asked. */
  peers: readonly { name: string; reachable: boolean }[] | undefined;
}

export type LivenessDecision =
  | { kind: "answer"; answer: ProbeAnswer; isolated: boolean }
  /** The peers must be asked before an answer can be given. */
  | { kind: "askPeers" };

/**
 * Decides liveness. A primary counts as isolated only when the API server and every known peer are out of reach: one dead peer
 * must not bring down a primary that serves writes.
 */
export function planLiveness(view: LivenessView): LivenessDecision {
  const alive: LivenessDecision = { kind: "answer", answer: ok, isolated: false };
  if (view.isPrimary !== true || view.apiReachable || !view.clusterKnown) return alive;
  if (!view.isolationCheck || view.instances <= 1) return alive;
  if (view.peers === undefined) return { kind: "askPeers" };
  if (view.peers.length === 0 || view.peers.some((peer) => peer.reachable)) return alive;
  const names = view.peers.map((peer) => peer.name).join(", ");
  return {
    kind: "answer",
    isolated: true,
    answer: {
      status: 500,
      body: `liveness check failed: the API server and all peers (${names}) are unreachable`,
    },
  };
}

export type ProbeKind = "startup" | "readiness";
export type ProbeStrategy = "pg_isready" | "query" | "streaming";

/** Whether a probe can be answered without asking PostgreSQL. */
export function planProbeShortcut(view: {
  kind: ProbeKind;
  mightBeUnavailable: boolean;
  rewinding: boolean;
  postmasterRunning: boolean;
}): ProbeAnswer | undefined {
  if (view.kind === "startup") {
    return view.mightBeUnavailable || view.rewinding ? { status: 200, body: "Skipped" } : undefined;
  }
  return view.postmasterRunning ? undefined : { status: 500, body: "instance is not ready yet" };
}

export function formatProbeAnswer(kind: ProbeKind, error: string | undefined): ProbeAnswer {
  return error === undefined ? ok : { status: 500, body: `${kind} check failed: ${error}` };
}

/** What a `streaming` probe is decided from. */
export interface StreamingView {
  isPrimary: boolean;
  hasPrimaryConninfo: boolean;
  /** Bytes between the last position heard of and the replayed one; `undefined` without a WAL receiver. */
  lagBytes: bigint | undefined;
  maximumLagBytes: bigint | undefined;
  latestEndTime: string | undefined;
}

/** Reason why a standby is not streaming well enough; `undefined` when it is. */
export function checkStreaming(view: StreamingView): string | undefined {
  if (view.isPrimary || !view.hasPrimaryConninfo) return undefined;
  if (view.lagBytes === undefined) return "replica not connected via streaming replication";
  if (view.maximumLagBytes === undefined || view.lagBytes <= view.maximumLagBytes) return undefined;
  return `streaming replica lagging; detectedLag=${view.lagBytes} configuredLag=${view.maximumLagBytes} latestEndTime=${view.latestEndTime ?? "unknown"}`;
}
