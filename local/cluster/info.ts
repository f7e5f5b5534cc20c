import { expandableStorageClass } from "../csi/names.ts";
import { bucket, ensureS3Credentials, insideEndpoint } from "../object-store/local-store.ts";
import { holdsNamespaces } from "../process/namespaces.ts";
import { operator, quickstart } from "../quickstart/names.ts";
import { toolPath } from "../tools/build.ts";
import { defaultStorageClass } from "./config/storage.ts";
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
  /** How many nodes it has, or is to have at its next start. */
  nodes: number;
  kubectl: string;
  stateFolder: string;
  logs: string;
  operatorNamespace: string;
  quickstart: { namespace: string; name: string };
  /** The S3 server for backups: how this machine reaches it, and pods; where the quickstart's backups are. */
  s3: {
    endpoint: string;
    endpointInCluster: string;
    accessKey: string;
    secretKey: string;
    region: string;
    destinationPath: string;
    serverName: string;
  } | null;
  /** The class of volumes of claims that name none, and the one whose volumes have a real size and can grow. */
  storageClasses: { default: string; expandable: string };
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
    nodes: state.nodes,
    kubectl: toolPath("kubectl"),
    stateFolder: folders.root,
    logs: folders.logs,
    operatorNamespace: operator.namespace,
    quickstart: quickstart,
    s3: running && state.s3Port !== undefined ? storeInfo(folders, state.s3Port) : null,
    storageClasses: { default: defaultStorageClass, expandable: expandableStorageClass },
    enter: running ? enterControlPlane(folders) : null,
  };
}

function storeInfo(folders: ClusterFolders, port: number): ClusterInfo["s3"] {
  return {
    endpoint: `http://127.0.0.1:${port}`,
    endpointInCluster: insideEndpoint,
    ...ensureS3Credentials(folders.objectStore),
    region: "us-east-1",
    destinationPath: `s3://${bucket}/`,
    serverName: quickstart.name,
  };
}
