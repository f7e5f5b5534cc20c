import { type Lsn, parseLsn } from "./lsn.ts";

/** One line of a timeline history file: the parent timeline and where it was left. */
export interface TimelineSwitch {
  timeline: number;
  switchPoint: Lsn;
  reason: string;
}

/** Reads a `.history` file, oldest switch first; `undefined` when a line is not of the format. */
export function parseTimelineHistory(text: string): TimelineSwitch[] | undefined {
  const switches: TimelineSwitch[] = [];
  for (const line of text.split("\n")) {
    const trimmed = line.trim();
    if (trimmed === "" || trimmed.startsWith("#")) continue;
    const match = /^(\d+)\s+(\S+)\s*(.*)$/.exec(trimmed);
    const switchPoint = match?.[2] === undefined ? undefined : parseLsn(match[2]);
    if (!match || switchPoint === undefined) return undefined;
    const timeline = Number(match[1]);
    // PostgreSQL itself refuses a file whose timelines do not rise.
    if (timeline <= (switches.at(-1)?.timeline ?? 0)) return undefined;
    switches.push({ timeline, switchPoint, reason: match[3] ?? "" });
  }
  return switches;
}

/** Where a history leaves a timeline; `undefined` when the timeline is not an ancestor. */
export function switchPointOf(history: readonly TimelineSwitch[], timeline: number): Lsn | undefined {
  return history.find((entry) => entry.timeline === timeline)?.switchPoint;
}
