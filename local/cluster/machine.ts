import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { identify, isAlive, type ProcessIdentity, signal } from "../process/identity.ts";
import { holdsNamespaces, startNamespaces } from "../process/namespaces.ts";
import { listProcesses } from "../process/processes.ts";
import { waitFor } from "../process/wait.ts";
import { cgroupParent, removeCgroups } from "./cgroups.ts";
import type { ClusterFolders } from "./folders.ts";
import { ensureNodePrograms } from "./image/pack.ts";
import { type ClusterState, writeState } from "./state.ts";

export interface Machine {
  /** First process of the cluster's namespaces. */
  first: ProcessIdentity;
  isNew: boolean;
}

/** The namespaces of the cluster, made anew when their first process is gone. */
export async function ensureMachine(folders: ClusterFolders, state: ClusterState): Promise<Machine> {
  if (state.machine && holdsNamespaces(state.machine)) return { first: state.machine, isNew: false };
  // An interrupted start can have made one without having noted it.
  await destroyMachine(folders, state);
  rmSync(folders.records, { recursive: true, force: true });
  mkdirSync(folders.records, { recursive: true });
  const programs = await ensureNodePrograms();
  state.machine = await startNamespaces([programs.pause, folders.root], join(folders.logs, "namespaces.log"));
  writeState(folders.stateFile, state);
  return { first: state.machine, isNew: true };
}

/** Kills everything that runs in the cluster's namespaces and removes its control groups. */
export async function destroyMachine(folders: ClusterFolders, state: ClusterState): Promise<void> {
  for (const machine of findMachines(folders, state)) {
    signal(machine, "SIGKILL");
    await waitFor("end of the cluster's processes", async () => !isAlive(machine), { timeoutMs: 30_000 });
  }
  await removeCgroups(cgroupParent(folders.root));
  delete state.machine;
}

/** Every living first process of this cluster: the noted one and those that carry its folder as their argument. */
function findMachines(folders: ClusterFolders, state: ClusterState): ProcessIdentity[] {
  const labelled = listProcesses()
    .filter((pid) => isMachineCommand(commandLine(pid), folders.root))
    .map(identify)
    .filter((identity) => identity !== undefined);
  const noted = state.machine && isAlive(state.machine) ? [state.machine] : [];
  return [...noted, ...labelled.filter(({ pid }) => noted[0]?.pid !== pid)];
}

/** Whether a command line is that of a cluster's first process: our program with exactly the cluster's folder. */
export function isMachineCommand(command: readonly string[], root: string): boolean {
  return command.length === 2 && (command[0]?.endsWith("/pause") ?? false) && command[1] === root;
}

function commandLine(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
  } catch {
    return [];
  }
}
