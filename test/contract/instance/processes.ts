import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Every process whose program and folder can be seen. */
export function listProcesses(): { pid: number; folder: string; program: string; command: string }[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const [folder, program] = [readlinkSync(`/proc/${name}/cwd`), readlinkSync(`/proc/${name}/exe`)];
      return [{ pid: Number(name), folder, program, command: readFileSync(`/proc/${name}/cmdline`, "utf8") }];
    } catch {
      // Ended meanwhile, or a kernel thread.
      return [];
    }
  });
}

/** Number of a process in its own namespace. */
export function innerPid(pid: number): string | undefined {
  try {
    return /^NSpid:.*\s(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  } catch {
    return undefined;
  }
}
