/** What a bootstrap job does with a folder that is there already. */
export type BootstrapTargetAction =
  | { kind: "none" }
  /** Keep what may be someone's data out of the way. */
  | { kind: "rename"; suffix: string; reason: string }
  /** Remove what an earlier, interrupted attempt left. */
  | { kind: "remove"; reason: string };

/** Suffix of folders that are put aside: UTC, to the second. */
export function formatFolderTimestamp(now: number): string {
  return new Date(now).toISOString().replace(/[-:]/g, "").replace(/\.\d+/, "").toLowerCase().replace("z", "Z");
}

/** What a bootstrap job finds in its volumes; anything that could not be found out must fail the job instead. */
export interface BootstrapTargetView {
  /** `valid`: pg_controldata reads it; `refused`: that program ran and said no. */
  data: "absent" | "valid" | "refused";
  controlFile: "absent" | "empty" | "filled";
  /** The WAL folder outside PGDATA, if there is one. */
  wal: "absent" | "empty" | "filled";
  /** A join marked the folders as its unfinished copy. */
  unfinishedCopy: boolean;
  /** A postmaster ran on the data folder. */
  started: boolean;
  now: number;
}

/** Removes only what cannot be anyone's data: a copy that never ran, and a folder without a control file. */
export function planBootstrapTarget(view: BootstrapTargetView): {
  data: BootstrapTargetAction;
  wal: BootstrapTargetAction;
} {
  const none: BootstrapTargetAction = { kind: "none" };
  const data = view.data === "absent" ? none : planDataFolder(view);
  if (view.wal === "absent" || view.wal === "empty") return { data, wal: none };
  if (data.kind !== "none") return { data, wal: data };
  const suffix = formatFolderTimestamp(view.now);
  const wal: BootstrapTargetAction = view.unfinishedCopy
    ? { kind: "remove", reason: unfinished }
    : { kind: "rename", suffix, reason: "holds WAL whose data folder is not here" };
  return { data, wal };
}

const unfinished = "an unfinished copy of the primary";

function planDataFolder(view: BootstrapTargetView): BootstrapTargetAction {
  if (view.unfinishedCopy && !view.started) return { kind: "remove", reason: unfinished };
  if (view.data === "refused" && view.controlFile !== "filled") {
    return { kind: "remove", reason: "left by an interrupted attempt" };
  }
  const reason =
    view.data === "valid" ? "holds a valid PostgreSQL data folder" : "may hold data: it has a control file";
  return { kind: "rename", suffix: formatFolderTimestamp(view.now), reason };
}
