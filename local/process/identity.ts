import { readFileSync } from "node:fs";

/** A process that cannot be mistaken for a later one with the same number. */
export interface ProcessIdentity {
  pid: number;
  /** Start time in clock ticks since boot, field 22 of /proc/PID/stat. */
  startTime: string;
}

/** Start time from the text of /proc/PID/stat; undefined for a zombie. */
export function parseStartTime(stat: string): string | undefined {
  // The program's name stands in parentheses and may hold spaces and parentheses itself.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
}

/** The identity of a live process, or undefined when there is none with that number. */
export function identify(pid: number): ProcessIdentity | undefined {
  try {
    const startTime = parseStartTime(readFileSync(`/proc/${pid}/stat`, "utf8"));
    return startTime === undefined ? undefined : { pid, startTime };
  } catch {
    return undefined;
  }
}

/** Whether that very process still runs. */
export function isAlive(identity: ProcessIdentity): boolean {
  return identify(identity.pid)?.startTime === identity.startTime;
}

/** Sends a signal to that very process; false when it is gone. */
export function signal(identity: ProcessIdentity, name: NodeJS.Signals): boolean {
  if (!isAlive(identity)) return false;
  try {
    process.kill(identity.pid, name);
    return true;
  } catch {
    return false;
  }
}
