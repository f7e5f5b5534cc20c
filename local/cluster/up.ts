import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { certificatePaths } from "../control-plane/certificates.ts";
import { isApiServerReady } from "../control-plane/ready.ts";
import { ensureSeaweed } from "../object-store/seaweed.ts";
import { choosePort } from "../process/free-port.ts";
import type { ProcessIdentity } from "../process/identity.ts";
import { enterArguments } from "../process/namespaces.ts";
import { scriptArguments } from "../process/script.ts";
import { runVisibly } from "../process/visible.ts";
import { waitFor } from "../process/wait.ts";
import { type Report, step } from "../terminal/progress.ts";
import { UserError } from "../terminal/user-error.ts";
import { ensureTools } from "../tools/build.ts";
import { goTools } from "../tools/catalogue.ts";
import { network } from "./addresses.ts";
import { adminKubeconfig, ensureCertificates } from "./certificates.ts";
import type { ClusterFolders } from "./folders.ts";
import { startForwarding } from "./forwarder.ts";
import { createKubectl } from "./kubectl.ts";
import { ensureMachine } from "./machine.ts";
import { waitForOldPods } from "./old-pods.ts";
import { type ClusterState, readState, writeState } from "./state.ts";

export interface ClusterOptions {
  /** Whether etcd waits for the disk. @default true */
  fsync?: boolean;
  /** Number of nodes. @default as many as it had, at first 1 */
  nodes?: number;
}

/** Brings the local cluster up from whatever state it is in; resolves when its nodes are ready. */
export async function startCluster(
  folders: ClusterFolders,
  report: Report,
  options: ClusterOptions = {},
): Promise<void> {
  await ensureTools(
    goTools.map((tool) => tool.name),
    report,
  );
  const s3Program = await step(report, "Looking for the S3 server", "about 20 s the first time", ensureSeaweed);
  mkdirSync(folders.logs, { recursive: true });
  chmodSync(folders.root, 0o755);
  ensureCertificates(folders);
  const state = readState(folders.stateFile);
  setNodes(state, options.nodes);
  const startedAt = new Date();
  const { first: machine, isNew } = await ensureMachine(folders, state);
  const fsync = options.fsync === false ? "no-fsync" : "fsync";
  await runInside(folders, machine, [String(state.nodes), fsync, s3Program]);
  await ensureReachable(folders, state, machine);
  await ensureStoreReachable(folders, state, machine);
  writeState(folders.stateFile, state);
  await step(
    report,
    state.nodes === 1 ? "Waiting for the node to be ready" : "Waiting for the nodes to be ready",
    "about 10 s",
    () => waitForNodes(folders, state.nodes),
  );
  if (isNew) await waitForOldPods(createKubectl([`--kubeconfig=${folders.kubeconfig}`]), startedAt, report);
}

function setNodes(state: ClusterState, wanted: number | undefined): void {
  if (wanted === undefined) return;
  if (wanted < state.nodes) {
    const remedy = `ask for at least as many, or begin anew after \`npm stop -- --purge\``;
    throw new UserError(`The local cluster has ${state.nodes} nodes and can't lose any: ${remedy}.`);
  }
  state.nodes = wanted;
}

async function runInside(folders: ClusterFolders, machine: ProcessIdentity, args: readonly string[]): Promise<void> {
  const script = join(import.meta.dirname, "inside", "main.ts");
  const code = await runVisibly(
    "nsenter",
    enterArguments(machine.pid, [process.execPath, ...scriptArguments(script, ["control-plane", ...args])]),
  );
  if (code !== 0) {
    throw new UserError(
      `The local cluster did not start, see above and ${folders.logs}. Try again with \`npm start\`, or begin anew after \`npm stop -- --purge\`.`,
    );
  }
}

/** Makes the API server answer on a loopback port, the same as last time if it is free, and writes the kubeconfig. */
async function ensureReachable(folders: ClusterFolders, state: ClusterState, machine: ProcessIdentity): Promise<void> {
  if (state.apiPort !== undefined && (await answers(folders, state.apiPort))) return;
  const port = await choosePort(state.apiPort);
  await startForwarding({
    port,
    machinePid: machine.pid,
    targetHost: network.controlPlane,
    targetPort: network.apiPort,
    logFile: join(folders.logs, "forwarder.log"),
  });
  state.apiPort = port;
  writeState(folders.stateFile, state);
  writeFileSync(folders.kubeconfig, adminKubeconfig(folders, port), { mode: 0o600 });
}

/** Makes the S3 server answer on a loopback port, the same as last time if it is free. */
async function ensureStoreReachable(
  folders: ClusterFolders,
  state: ClusterState,
  machine: ProcessIdentity,
): Promise<void> {
  if (state.s3Port !== undefined && (await isS3(`http://127.0.0.1:${state.s3Port}`))) return;
  const port = await choosePort(state.s3Port);
  await startForwarding({
    port,
    machinePid: machine.pid,
    targetHost: network.controlPlane,
    targetPort: network.s3Port,
    logFile: join(folders.logs, "forwarder.log"),
  });
  state.s3Port = port;
  writeState(folders.stateFile, state);
}

/** Whether our S3 server answers there: it refuses who brings no credentials. */
async function isS3(endpoint: string): Promise<boolean> {
  return await fetch(endpoint).then(
    ({ status }) => status === 403,
    () => false,
  );
}

/** Whether the API server of this cluster answers on that port. */
async function answers(folders: ClusterFolders, port: number): Promise<boolean> {
  const paths = certificatePaths(folders.pki);
  const token = readFileSync(paths.tokens, "utf8").split(",")[0] ?? "";
  return await isApiServerReady(`https://127.0.0.1:${port}`, readFileSync(paths.authority, "utf8"), token);
}

interface NodeList {
  items: { metadata: { name: string }; status?: { conditions?: { type: string; status: string }[] } }[];
}

async function waitForNodes(folders: ClusterFolders, count: number): Promise<void> {
  const kubectl = createKubectl([`--kubeconfig=${folders.kubeconfig}`]);
  await waitFor(
    `${count} nodes ready`,
    async () => {
      const { code, stdout } = await kubectl.try(["get", "nodes", "-o", "json"]);
      if (code !== 0) return false;
      const { items } = JSON.parse(stdout) as NodeList;
      const isReady = (node: NodeList["items"][number]) =>
        node.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;
      return items.filter(isReady).length >= count;
    },
    { timeoutMs: 120_000, everyMs: 500 },
  );
}
