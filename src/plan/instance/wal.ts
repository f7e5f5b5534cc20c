import { parseWalFileName } from "../../postgres/wal-name.ts";

/** What a WAL request is decided from. */
export interface WalView {
  me: string;
  current: string;
  /** Name of the target primary; `undefined` while it is pending or unset. */
  target: string | undefined;
  replicaCluster: boolean;
  archiver: WalArchiverChoice;
}

/** Who archives the WAL of a cluster. */
export type WalArchiverChoice =
  | { kind: "plugin"; plugin: string }
  /** None is marked as the archiver, but these may archive: what a plugin does is told by the plugin. */
  | { kind: "perhaps"; plugins: readonly string[] }
  | { kind: "objectStore" }
  | { kind: "none" };

export type WalArchiveDecision =
  /** Answer success without archiving. */
  | { kind: "skip"; reason: string; unconfigured: boolean }
  /** Nobody's fault: PostgreSQL asks again until the roles are settled. */
  | { kind: "refuse"; level: "warning"; reason: string }
  | { kind: "archive"; by: Exclude<WalArchiverChoice, { kind: "none" }> };

/** Decides what becomes of a finished segment (reference: instance manager §10.1). */
export function planWalArchive(view: WalView): WalArchiveDecision {
  if (view.replicaCluster && view.current !== view.me && view.target !== view.me) {
    return { kind: "skip", reason: "this instance of a replica cluster is not its primary", unconfigured: false };
  }
  if (view.current !== view.me) {
    return { kind: "refuse", level: "warning", reason: "switchover in progress, refusing archiving" };
  }
  if (view.archiver.kind === "none") {
    return { kind: "skip", reason: "no WAL archive is configured", unconfigured: true };
  }
  return { kind: "archive", by: view.archiver };
}

/** Where a requested file is looked for. */
export interface WalRestoreSources {
  /** Plugins that can restore, in the order in which they are asked. */
  plugins: readonly string[];
  /** Whether an object store of the Cluster itself is asked after them. */
  objectStore: boolean;
}

export type WalRestoreDecision = { kind: "notFound"; reason: string } | { kind: "restore"; sources: WalRestoreSources };

/** Decides where a requested file could come from (reference: instance manager §10.2). */
export function planWalRestore(
  view: Pick<WalView, "me" | "current" | "target"> & {
    name: string;
    clusterTimeline: number;
    sources: WalRestoreSources;
  },
): WalRestoreDecision {
  const parsed = parseWalFileName(view.name.toUpperCase().replace(/\.HISTORY$/, ".history"));
  const timeline = parsed?.kind === "history" ? parsed.timeline : undefined;
  const isFuture = timeline !== undefined && view.clusterTimeline !== 0 && timeline > view.clusterTimeline;
  if (isFuture && view.me !== view.current && view.me !== view.target) {
    return { kind: "notFound", reason: `timeline ${timeline} is newer than the cluster's ${view.clusterTimeline}` };
  }
  if (view.sources.plugins.length === 0 && !view.sources.objectStore) {
    return { kind: "notFound", reason: "backup not configured" };
  }
  return { kind: "restore", sources: view.sources };
}

/** What one source said of a file. `absent`: it certainly has none; `endOfWal`: none for now, streaming may go on. */
export type WalSourceAnswer = "restored" | "absent" | "endOfWal" | "unknown";

/** Who waits for the file: what a failure means to PostgreSQL depends on it. */
export type WalRestorePurpose =
  /** A standby asks again, whatever it is told. */
  | "standby"
  /** A recovery takes exit code 1 for the end of the WAL, and then promotes. */
  | "recovery"
  /** pg_rewind gives up at the first failure, and is started again as a whole. */
  | "rewind";

/** How long a recovery is kept waiting for sources of which nothing is known. */
export const recoveryPatienceMs = 5 * 60_000;

/** PostgreSQL aborts a recovery at codes from 126 on; at 1 it would end it as if the WAL were complete. */
export const abortRecoveryCode = 126;

export type WalRestoreOutcome =
  | { kind: "answer"; code: 0 | 1 | typeof abortRecoveryCode }
  | { kind: "retry"; delayMs: number };

/** What PostgreSQL is told: only certain absence is ever answered as absence where that would end a recovery. */
export function planRestoreOutcome(view: {
  answers: readonly WalSourceAnswer[];
  purpose: WalRestorePurpose;
  elapsedMs: number;
  attempts: number;
}): WalRestoreOutcome {
  if (view.answers.includes("restored")) return { kind: "answer", code: 0 };
  if (!view.answers.includes("unknown") || view.purpose !== "recovery") return { kind: "answer", code: 1 };
  const delayMs = Math.min(15_000, 500 * 2 ** Math.min(10, view.attempts - 1));
  if (view.elapsedMs + delayMs > recoveryPatienceMs) return { kind: "answer", code: abortRecoveryCode };
  return { kind: "retry", delayMs };
}
