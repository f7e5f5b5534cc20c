import { readFileSync } from "node:fs";
import { listProcesses } from "./processes.ts";

interface Entry {
  pid: number;
  parent: number;
  session: number;
}

/** Asks every descendant of this process to end, save those that were given a session of their own to outlive it. */
export function endSession(): void {
  const entries = listProcesses().flatMap((pid) => readEntry(pid) ?? []);
  for (const pid of sessionDescendants(entries, process.pid)) {
    try {
      process.kill(pid, "SIGTERM");
    } catch {
      // It has ended meanwhile.
    }
  }
}

/** Descendants of a process that are in its session. */
export function sessionDescendants(entries: readonly Entry[], root: number): number[] {
  const session = entries.find(({ pid }) => pid === root)?.session;
  const found: number[] = [];
  for (let parents = [root]; parents.length > 0; ) {
    const children = entries.filter(({ parent, session: own }) => parents.includes(parent) && own === session);
    parents = children.map(({ pid }) => pid);
    found.push(...parents);
  }
  return found;
}

function readEntry(pid: number): Entry | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { pid, parent: Number(fields[1]), session: Number(fields[3]) };
  } catch {
    return undefined;
  }
}
