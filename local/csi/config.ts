import { join } from "node:path";
import { type ClusterFolders, nodeFolders } from "../cluster/folders.ts";

/** What the driver is started with. */
export interface DriverConfig {
  /** Socket for csi-provisioner and csi-resizer. */
  controllerSocket: string;
  nodes: readonly NodeConfig[];
}

export interface NodeConfig {
  name: string;
  /** Folder of the files that hold its volumes. */
  volumes: string;
  /** Socket for its kubelet. */
  socket: string;
  /** Where its kubelet looks for drivers. */
  registrationSocket: string;
  /** Notes its first process. */
  recordFile: string;
}

/** The driver's configuration for nodes of those names; the paths of sockets are kept short, for 107 bytes are the most. */
export function driverConfig(folders: ClusterFolders, nodes: readonly string[]): DriverConfig {
  return {
    controllerSocket: join(folders.sockets, "csi"),
    nodes: nodes.map((name) => ({
      name,
      volumes: nodeFolders(folders, name).loopFiles,
      socket: join(folders.sockets, `csi-${name}`),
      registrationSocket: join(nodeFolders(folders, name).kubelet, "plugins_registry", "csi.sock"),
      recordFile: join(folders.records, `${name}.json`),
    })),
  };
}
