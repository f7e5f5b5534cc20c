import { basename } from "node:path";
import { parseVolumeId } from "../csi/volume.ts";
import { run } from "../process/run.ts";
import { enterNode } from "./enter.ts";
import { type ClusterFolders, clusterFolders, stateFolder } from "./folders.ts";
import { firstMounts, loopDevicesUnder } from "./loop-devices.ts";

/** Lets the disk under a volume die: from now on every read and write of its filesystem fails. `volume` is the handle of a PersistentVolume of class csi-loop. */
export async function killVolume(volume: string, folders?: ClusterFolders): Promise<void> {
  await onVolume(volume, (path) => ["xfs_io", "-x", "-c", "shutdown", path], folders);
}

/** Lets the disk under a volume hang: who writes waits until it is thawed. */
export async function freezeVolume(volume: string, folders?: ClusterFolders): Promise<void> {
  await onVolume(volume, (path) => ["fsfreeze", "--freeze", path], folders);
}

/** Ends what `freezeVolume` began. */
export async function thawVolume(volume: string, folders?: ClusterFolders): Promise<void> {
  await onVolume(volume, (path) => ["fsfreeze", "--unfreeze", path], folders);
}

/** What takes the room on a filled volume; named so that no program of an instance looks at it. */
const filler = ".filler";

/** Leaves 4 MiB of room on a volume, less than a WAL segment. */
export async function fillVolume(volume: string, folders?: ClusterFolders): Promise<void> {
  const script = `free=$(df --output=avail -BM "$1" | tail -1 | tr -dc 0-9); fallocate -l $((free - 4))M "$1/${filler}"`;
  await onVolume(volume, (path) => ["sh", "-c", script, "sh", path], folders);
}

/** Ends what `fillVolume` began. */
export async function emptyVolume(volume: string, folders?: ClusterFolders): Promise<void> {
  await onVolume(volume, (path) => ["rm", "-f", `${path}/${filler}`], folders);
}

async function onVolume(
  volume: string,
  command: (path: string) => string[],
  folders = clusterFolders(stateFolder()),
): Promise<void> {
  const { node, name } = parseVolumeId(volume);
  const device = loopDevicesUnder(folders.root).find(({ file }) => basename(file) === `${name}.img`)?.device;
  if (device === undefined) throw new Error(`volume ${volume} is not mounted`);
  const [enter = "", ...rest] = enterNode(node, folders);
  const table = await run(enter, [...rest, "cat", "/proc/self/mountinfo"]);
  const [mount] = firstMounts(table, [device]);
  if (!mount) throw new Error(`volume ${volume} is not mounted on ${node}`);
  await run(enter, [...rest, ...command(mount.path)], { timeoutMs: 30_000 });
}
