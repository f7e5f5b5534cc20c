import { holdsNamespaces } from "../process/namespaces.ts";
import { operator, quickstart } from "../quickstart/names.ts";
import { toolPath } from "../tools/build.ts";
import { enterControlPlane } from "./enter.ts";
import type { ClusterFolders } from "./folders.ts";
import { readState } from "./state.ts";

/** What other programs need to know to use the local cluster. */
export interface ClusterInfo {
  running: boolean;
  /** Path of an administrator's kubeconfig; written by the first start. */
  kubeconfig: string;
  /** Address of the API server on this machine. */
  server: string | null;
  kubectl: string;
  stateFolder: string;
  logs: string;
  operatorNamespace: string;
  quickstart: { namespace: string; name: string };
  /** Start of a command line that runs the rest where pods and Services can be reached by address and name. */
  enter: string[] | null;
}

export function readInfo(folders: ClusterFolders): ClusterInfo {
  const state = readState(folders.stateFile);
  const running = state.machine !== undefined && holdsNamespaces(state.machine);
  return {
    running,
    kubeconfig: folders.kubeconfig,
    server: running && state.apiPort !== undefined ? `https://127.0.0.1:${state.apiPort}` : null,
    kubectl: toolPath("kubectl"),
    stateFolder: folders.root,
    logs: folders.logs,
    operatorNamespace: operator.namespace,
    quickstart: quickstart,
    enter: running ? enterControlPlane(folders) : null,
  };
}
