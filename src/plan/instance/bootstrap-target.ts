/** What a bootstrap job does with a data folder that is there already. */
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

/** A folder that pg_controldata can read may hold data and is renamed; anything else is the rest of a failed attempt. */
export function planBootstrapTarget(view: {
  exists: boolean;
  controlReadable: boolean;
  now: number;
}): BootstrapTargetAction {
  if (!view.exists) return { kind: "none" };
  if (!view.controlReadable) return { kind: "remove", reason: "left by an interrupted attempt" };
  return { kind: "rename", suffix: formatFolderTimestamp(view.now), reason: "holds a valid PostgreSQL data folder" };
}
