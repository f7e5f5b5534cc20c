import { createHash } from "node:crypto";
import { basename, dirname, join } from "node:path";

/** The clone that this file belongs to. */
export const projectRoot = join(import.meta.dirname, "..", "..");

/** Folder that holds one folder for each clone, unless the user chooses another place. */
const defaultParent = "/var/lib/cnpg-ts";

/** Where everything of one clone's local cluster is kept: one folder, outside of HOME and of the clone. */
export function stateFolder(
  env: Record<string, string | undefined> = process.env,
  clone: string = projectRoot,
): string {
  const chosen = env["CNPG_TS_STATE"];
  return chosen === undefined || chosen === "" ? join(defaultParent, pathKey(clone)) : chosen;
}

/** Short name of a cluster, different for each state folder. */
export function clusterKey(root: string): string {
  return dirname(root) === defaultParent ? basename(root) : pathKey(root);
}

/** Short name of a folder, different for each path. */
export function pathKey(path: string): string {
  return createHash("sha256").update(path).digest("hex").slice(0, 8);
}

export interface ClusterFolders {
  root: string;
  stateFile: string;
  lock: string;
  /** Which process runs `npm start` for it. */
  starter: string;
  kubeconfig: string;
  pki: string;
  etcd: string;
  /** Sockets of the control plane. */
  sockets: string;
  logs: string;
  /** Records of the processes of the running machine; emptied when a new one is made. */
  records: string;
  /** Rendered configuration files. */
  config: string;
  nodes: string;
  /** Data and user of the S3 server. */
  objectStore: string;
}

/** The parts of a state folder. */
export function clusterFolders(root: string): ClusterFolders {
  return {
    root,
    stateFile: join(root, "cluster.json"),
    lock: join(root, "lock"),
    starter: join(root, "starter.json"),
    kubeconfig: join(root, "kubeconfig"),
    pki: join(root, "pki"),
    etcd: join(root, "etcd"),
    sockets: join(root, "s"),
    logs: join(root, "logs"),
    records: join(root, "records"),
    config: join(root, "config"),
    nodes: join(root, "nodes"),
    objectStore: join(root, "object-store"),
  };
}

export interface NodeFolders {
  root: string;
  containerd: string;
  kubelet: string;
  podLogs: string;
  volumes: string;
  /** Files that hold the volumes which can grow. */
  loopFiles: string;
  config: string;
  cniConfig: string;
  cniAddresses: string;
  /** Which image archive each loaded image came from. */
  loadedImages: string;
}

/** The parts of one node's folder. */
export function nodeFolders(folders: ClusterFolders, node: string): NodeFolders {
  const root = join(folders.nodes, node);
  return {
    root,
    containerd: join(root, "containerd"),
    kubelet: join(root, "kubelet"),
    podLogs: join(root, "pod-logs"),
    volumes: join(root, "volumes"),
    loopFiles: join(root, "loop-files"),
    config: join(root, "config"),
    cniConfig: join(root, "cni"),
    cniAddresses: join(root, "cni-addresses"),
    loadedImages: join(root, "images.json"),
  };
}
