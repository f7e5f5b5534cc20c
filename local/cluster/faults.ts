import { join } from "node:path";
import { run } from "../process/run.ts";
import { nodeAddresses } from "./addresses.ts";
import { enterControlPlane } from "./enter.ts";
import { type ClusterFolders, clusterFolders, stateFolder } from "./folders.ts";
import { readRecord } from "./inside/record.ts";

/** Takes a node off the network; its pods go on running. */
export function cutNode(index: number, folders?: ClusterFolders): Promise<string> {
  return setLink(index, "down", folders);
}

/** Brings a node that was cut off back onto the network. */
export function rejoinNode(index: number, folders?: ClusterFolders): Promise<string> {
  return setLink(index, "up", folders);
}

/** Ends everything on a node at once, as a power failure does; the next start of the cluster brings it back. */
export async function powerOffNode(
  index: number,
  folders: ClusterFolders = clusterFolders(stateFolder()),
): Promise<void> {
  const { name } = nodeAddresses(index);
  const record = readRecord(join(folders.records, `${name}.json`));
  if (!record) throw new Error(`there is no running node ${name}`);
  await runBeside(folders, ["sh", "-c", `kill -KILL ${record.pid}`]);
}

function setLink(index: number, state: "up" | "down", folders = clusterFolders(stateFolder())): Promise<string> {
  return runBeside(folders, ["ip", "link", "set", nodeAddresses(index).link, state]);
}

function runBeside(folders: ClusterFolders, line: readonly string[]): Promise<string> {
  const [command = "", ...args] = [...enterControlPlane(folders), ...line];
  return run(command, args);
}
