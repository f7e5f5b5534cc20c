import { readdirSync, readFileSync } from "node:fs";

/** Parent's process number from the text of /proc/PID/stat. */
export function parseParent(stat: string): number {
  // The program's name stands in parentheses and may hold spaces and parentheses itself.
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
}

/** Numbers of all processes that can be seen from this process namespace. */
export function listProcesses(): number[] {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number);
}

/** Numbers of the direct children of a process. */
export function childrenOf(parent: number): number[] {
  return listProcesses().filter((pid) => {
    try {
      return parseParent(readFileSync(`/proc/${pid}/stat`, "utf8")) === parent;
    } catch {
      // It ended while we looked.
      return false;
    }
  });
}
