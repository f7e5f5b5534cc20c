/** What a start is decided from while the Cluster cannot be read. */
export interface CachedStartView {
  /** Whether the API server gives no answer at all: a refusal is an answer, and so is that there is no such Cluster. */
  unreachable: boolean;
  /** How often the Cluster was asked for in vain. */
  attempts: number;
  /** Role by the files in PGDATA. */
  dataRole: "primary" | "standby";
  /** Name of the pod, by its UID, in which PostgreSQL last ran as a standby that nothing held back; `undefined` = none did. */
  notedPod: string | undefined;
  /** UID of this very pod. */
  myPod: string;
  /** A rewind or a copy began and did not end. */
  unfinished: boolean;
}

export type CachedStartDecision = { kind: "start"; reason: string } | { kind: "wait"; reason: string };

/** An API server that restarts is back before the second look. */
const fewestAttempts = 2;

/**
 * Whether a stopped PostgreSQL may start by what its pod knew last. A standby only follows, so a Cluster that changed meanwhile does
 * no harm; a primary needs the right to write, which nobody but the API server gives.
 */
export function planCachedStart(view: CachedStartView): CachedStartDecision {
  const wait = (reason: string): CachedStartDecision => ({ kind: "wait", reason });
  if (!view.unreachable) return wait("the API server answers");
  if (view.attempts < fewestAttempts) return wait("the API server may be back at once");
  if (view.dataRole === "primary") return wait("the data folder is a primary's, which needs the primary lease");
  if (view.unfinished) return wait("the data folder was being rewound or copied");
  // Another pod of the name has other certificates and another image, or none of its files yet.
  if (view.notedPod !== view.myPod)
    return wait("PostgreSQL did not run as a standby in this pod before, or was fenced");
  return { kind: "start", reason: "a standby that ran in this pod before, and the API server is unreachable" };
}
