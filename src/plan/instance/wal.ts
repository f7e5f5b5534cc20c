/** What a WAL request is decided from. */
export interface WalView {
  me: string;
  current: string;
  /** Name of the target primary; `undefined` while it is pending or unset. */
  target: string | undefined;
  replicaCluster: boolean;
  /** Plugin that archives WAL, if one is configured. */
  archiverPlugin: string | undefined;
  /** Whether `spec.backup.barmanObjectStore` is set. */
  objectStore: boolean;
}

export type WalArchiveDecision =
  /** Answer success without archiving. */
  | { kind: "skip"; reason: string }
  | { kind: "refuse"; reason: string }
  | { kind: "archive"; by: "plugin" | "objectStore"; plugin?: string };

/** Decides what becomes of a finished segment (reference: instance manager §10.1). */
export function planWalArchive(view: WalView): WalArchiveDecision {
  if (view.replicaCluster && view.current !== view.me && view.target !== view.me) {
    return { kind: "skip", reason: "this instance of a replica cluster is not its primary" };
  }
  if (view.current !== view.me) return { kind: "refuse", reason: "switchover in progress, refusing archiving" };
  if (view.archiverPlugin !== undefined) return { kind: "archive", by: "plugin", plugin: view.archiverPlugin };
  if (view.objectStore) return { kind: "archive", by: "objectStore" };
  return { kind: "skip", reason: "no WAL archive is configured" };
}

export type WalRestoreDecision =
  | { kind: "notFound"; reason: string }
  | { kind: "restore"; by: "plugin" | "objectStore" };

/** Timeline of a `.history` file's name; `undefined` for any other name. */
function historyTimeline(name: string): number | undefined {
  const digits = /^([0-9A-Fa-f]{8})\.history$/.exec(name)?.[1];
  return digits === undefined ? undefined : Number.parseInt(digits, 16);
}

/** Decides where a requested file could come from (reference: instance manager §10.2). */
export function planWalRestore(
  view: WalView & { name: string; clusterTimeline: number; restorePlugins: boolean },
): WalRestoreDecision {
  const timeline = historyTimeline(view.name);
  const isFuture = timeline !== undefined && view.clusterTimeline !== 0 && timeline > view.clusterTimeline;
  if (isFuture && view.me !== view.current && view.me !== view.target) {
    return { kind: "notFound", reason: `timeline ${timeline} is newer than the cluster's ${view.clusterTimeline}` };
  }
  if (view.restorePlugins) return { kind: "restore", by: "plugin" };
  if (view.objectStore) return { kind: "restore", by: "objectStore" };
  return { kind: "notFound", reason: "backup not configured" };
}
