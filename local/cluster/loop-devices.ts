import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join, sep } from "node:path";
import { parseMountTable } from "../csi/mount-table.ts";
import { listProcesses } from "../process/processes.ts";
import { tryRun } from "../process/run.ts";
import { waitFor } from "../process/wait.ts";

/** A loop device of this machine and the file behind it. */
export interface LoopDevice {
  device: string;
  file: string;
}

/** Loop devices whose files are in a folder. */
export function loopDevicesUnder(root: string): LoopDevice[] {
  return readdirSync("/sys/block")
    .filter((name) => name.startsWith("loop"))
    .map((name) => ({ device: `/dev/${name}`, file: backingFile(name) }))
    .filter(({ file }) => file.startsWith(root + sep));
}

/** The kernel notes a file that was removed meanwhile with a word behind its name. */
function backingFile(name: string): string {
  return read(join("/sys/block", name, "loop", "backing_file")).trim();
}

/**
 * Lets every frozen filesystem of those in a folder go on: who waits for one can't even be killed. Best effort, one that is
 * not frozen says so.
 */
export async function thawLoopDevices(root: string): Promise<void> {
  const devices = loopDevicesUnder(root).map(({ device }) => device);
  if (devices.length === 0) return;
  for (const pid of onePerMountNamespace()) {
    for (const { path, source } of firstMounts(read(`/proc/${pid}/mountinfo`), devices)) {
      const args = [`--mount=/proc/${pid}/ns/mnt`, "--", "fsfreeze", "--unfreeze", path];
      await tryRun("nsenter", args, { timeoutMs: 10_000 });
      devices.splice(devices.indexOf(source), 1);
    }
  }
}

/** Waits until the devices are gone, as they are with the last mount of each, and takes away what is not mounted at all. */
export async function waitForLoopDevices(root: string): Promise<void> {
  await waitFor(
    `end of the loop devices of ${root}`,
    async () => {
      const left = loopDevicesUnder(root);
      // Only marks it while it is in use: it then goes with its last user.
      for (const { device } of left) await tryRun("losetup", ["--detach", device], { timeoutMs: 10_000 });
      return left.length === 0;
    },
    { timeoutMs: 30_000, everyMs: 100 },
  );
}

/** One mount for each of the devices, from the text of a process's mountinfo. */
export function firstMounts(mountInfo: string, devices: readonly string[]): { path: string; source: string }[] {
  const table = parseMountTable(mountInfo);
  return devices.flatMap((device) => table.find(({ source }) => source === device) ?? []);
}

function onePerMountNamespace(): number[] {
  const found = new Map<string, number>();
  for (const pid of listProcesses()) {
    try {
      const namespace = readlinkSync(`/proc/${pid}/ns/mnt`);
      if (!found.has(namespace)) found.set(namespace, pid);
    } catch {
      // It has ended.
    }
  }
  return [...found.values()];
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    // A device without a file behind it, or a process that has ended.
    return "";
  }
}
