import { join } from "node:path";
import { enterArguments, holdsNamespaces } from "../process/namespaces.ts";
import { UserError } from "../terminal/user-error.ts";
import { type ClusterFolders, clusterFolders, stateFolder } from "./folders.ts";
import { readRecord } from "./inside/record.ts";
import { readState } from "./state.ts";

/**
 * Start of a command line that runs the rest beside the control plane: with the cluster's network, DNS and process
 * numbers. Pods and Services can be reached from there by address and by name.
 */
export function enterControlPlane(folders: ClusterFolders = clusterFolders(stateFolder())): string[] {
  const { machine } = readState(folders.stateFile);
  if (!machine || !holdsNamespaces(machine))
    throw new UserError("The local cluster is not running: start it with `npm start`.");
  // Without the final program: whoever uses it appends that.
  return ["nsenter", ...enterArguments(machine.pid)];
}

/** Start of a command line that runs the rest on a node, in its network, mounts and processes. */
export function enterNode(node: string, folders: ClusterFolders = clusterFolders(stateFolder())): string[] {
  const record = readRecord(join(folders.records, `${node}.json`));
  if (!record) throw new UserError(`The local cluster has no running node ${node}.`);
  // The record holds the number by which the control plane's side knows the node's first process.
  return [...enterControlPlane(folders), "nsenter", ...enterArguments(record.pid)];
}
