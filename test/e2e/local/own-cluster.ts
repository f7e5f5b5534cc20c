import { spawn } from "node:child_process";
import { readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { cgroupFolders, cgroupParent } from "../../../local/cluster/cgroups.ts";
import { type ClusterFolders, clusterFolders, projectRoot } from "../../../local/cluster/folders.ts";
import { createKubectl, type Kubectl } from "../../../local/cluster/kubectl.ts";
import { readState } from "../../../local/cluster/state.ts";
import { listProcesses } from "../../../local/process/processes.ts";
import { scriptArguments } from "../../../local/process/script.ts";

/** A local cluster that only these tests use, beside the one that may be running for others. */
export interface OwnCluster {
  folders: ClusterFolders;
  kubectl: Kubectl;
  /** Runs the program of `npm start` or `npm stop`. */
  command(script: "start" | "stop", args?: readonly string[]): Promise<Outcome>;
  /** Numbers of all processes of the cluster, as seen from outside, those that run its commands included. */
  processes(): number[];
  /** Those in the cluster's own namespaces. */
  namespaceProcesses(): number[];
  cgroups(): string[];
  apiPort(): number | undefined;
}

export interface Outcome {
  code: number | null;
  output: string;
}

export function ownCluster(root: string): OwnCluster {
  process.env["CNPG_TS_STATE"] = root;
  const folders = clusterFolders(root);
  return {
    folders,
    kubectl: createKubectl([`--kubeconfig=${folders.kubeconfig}`]),
    command: (script, args = []) => runScript(join(projectRoot, "local", `${script}.ts`), args),
    processes: () => processesOf(root),
    namespaceProcesses: () => processesOf(root).filter((pid) => namespaceOf(pid) !== namespaceOf(process.pid)),
    cgroups: () => cgroupFolders(cgroupParent(root)),
    apiPort: () => readState(folders.stateFile).apiPort,
  };
}

/** Runs a script of the repository; resolves with its exit code (null after a kill) and all that it printed. */
export function runScript(script: string, args: readonly string[] = [], killAfterMs?: number): Promise<Outcome> {
  const child = spawn(process.execPath, scriptArguments(script, args), { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  const killer = killAfterMs === undefined ? undefined : setTimeout(() => child.kill("SIGKILL"), killAfterMs);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    // Not "close": what outlives the command must not keep the test waiting for its output.
    child.once("exit", (code) => {
      clearTimeout(killer);
      resolve({ code, output });
    });
  });
}

/** Processes that have a path, alone or at the end of an argument, on their command line or in their environment. */
export function processesOf(root: string): number[] {
  const mentions = (pid: number) =>
    ["cmdline", "environ"].some((file) => {
      try {
        return readFileSync(`/proc/${pid}/${file}`, "utf8")
          .split("\0")
          .some((part) => part.endsWith(root));
      } catch {
        return false;
      }
    });
  return listProcesses().filter((pid) => pid !== process.pid && mentions(pid));
}

function namespaceOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`);
  } catch {
    // It has ended: count it to nobody.
    return readlinkSync("/proc/self/ns/net");
  }
}
