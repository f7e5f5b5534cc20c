import { promises as fs } from "node:fs";
import { basename } from "node:path";

/** A process as /proc shows it. */
interface ProcessFacts {
  pid: number;
  program: string;
  folder: string;
}

async function readProcess(pid: number): Promise<ProcessFacts | undefined> {
  try {
    const [program, folder] = await Promise.all([fs.readlink(`/proc/${pid}/exe`), fs.readlink(`/proc/${pid}/cwd`)]);
    return { pid, program: basename(program), folder };
  } catch {
    // Gone meanwhile, or another user's.
    return undefined;
  }
}

/** Processes of PostgreSQL that work in a data folder. */
export async function findPostgresProcesses(pgData: string, program: string): Promise<number[]> {
  const folder = await fs.realpath(pgData).catch(() => pgData);
  const pids = (await fs.readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const processes = await Promise.all(pids.map(readProcess));
  // A program that was replaced on disk shows with a suffix.
  return processes.flatMap((process) =>
    process && process.program.replace(/ \(deleted\)$/, "") === program && process.folder === folder
      ? [process.pid]
      : [],
  );
}

/** Whether a pid is a live process of the given program. */
export async function isProgram(pid: number, program: string): Promise<boolean> {
  return (await readProcess(pid))?.program.replace(/ \(deleted\)$/, "") === program;
}

/** Kills what a dead postmaster left behind, so that a new one finds the shared memory free. */
export async function killOrphans(pgData: string, program: string): Promise<number> {
  const pids = await findPostgresProcesses(pgData, program);
  for (const pid of pids) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // Ended by itself.
    }
  }
  return pids.length;
}
