import { checkDrain } from "../../barman/archive-request.ts";
import type { Lsn } from "../../postgres/lsn.ts";
import type { TimelineSwitch } from "../../postgres/timeline-history.ts";
import { parseWalFileName } from "../../postgres/wal-name.ts";

/** What a former primary knows of the timeline that lives on. */
export interface SharedHistory {
  /** Timeline of those who live on, and up to where it certainly holds what this instance has. */
  timeline: number;
  position: Lsn;
  /** How they came to it; empty for timeline 1. */
  history: readonly TimelineSwitch[];
  segmentBytes: number;
}

/** WAL files by what a former primary may do with them; history files first, then in order. */
export interface DrainPlan {
  /** Common to both: the archive wants them. */
  archive: readonly string[];
  /** Not finished before the switch, or written after it: they belong to nobody's archive. */
  divergent: readonly { name: string; reason: string }[];
}

/** Sorts files that wait to be archived (safety protocol §5.5). */
export function planDrain(names: readonly string[], shared: SharedHistory): DrainPlan {
  const { timeline, position, segmentBytes } = shared;
  const own: TimelineSwitch = { timeline, switchPoint: position, reason: "" };
  const limit = { history: [...shared.history, own], segmentBytes };
  const archive: string[] = [];
  const divergent: { name: string; reason: string }[] = [];
  for (const name of names) {
    const reason = checkDrain(name, limit);
    if (reason === null) archive.push(name);
    else divergent.push({ name, reason });
  }
  const rank = (name: string) => (parseWalFileName(name)?.kind === "history" ? 0 : 1);
  archive.sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  return { archive, divergent };
}
