// Runs inside the cluster's namespaces, or inside a node's: brings up what is not running there.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ProcessIdentity } from "../../process/identity.ts";
import { enterArguments, holdsNamespaces, startNamespaces } from "../../process/namespaces.ts";
import { scriptArguments } from "../../process/script.ts";
import { endWithParent, runVisibly } from "../../process/visible.ts";
import { reportToStderr, step } from "../../terminal/progress.ts";
import { runMain } from "../../terminal/user-error.ts";
import { type NodeAddresses, network, nodeAddresses } from "../addresses.ts";
import { clusterFolders, stateFolder } from "../folders.ts";
import { ensureNodePrograms, type NodePrograms } from "../image/pack.ts";
import { startApiServer, startControllers } from "./control-plane.ts";
import { Daemons } from "./daemon.ts";
import { connectNode, routeServices, setUpControlPlaneLinks } from "./links.ts";
import { coverFile } from "./mounts.ts";
import { startNode } from "./node.ts";
import { startObjectStore } from "./object-store.ts";
import { readRecord, writeRecord } from "./record.ts";

const folders = clusterFolders(stateFolder());

async function startControlPlaneAndNodes(nodeCount: number, fsync: boolean, s3Program: string): Promise<void> {
  const programs = await ensureNodePrograms();
  const nodes = Array.from({ length: nodeCount }, (_, index) => nodeAddresses(index + 1));
  const [first] = nodes;
  if (!first) throw new Error("a cluster has at least one node");
  const daemons = new Daemons(join(folders.records, "control-plane"), join(folders.logs, "control-plane"));
  await setUpControlPlaneLinks();
  await useClusterDns();
  await step(reportToStderr, "Starting etcd and the API server", "about 6 s", () =>
    startApiServer(folders, daemons, fsync),
  );
  await Promise.all([
    step(reportToStderr, "Starting controllers, scheduler, DNS and storage", "about 5 s", () =>
      startControllers(folders, daemons, nodes),
    ),
    step(reportToStderr, "Starting the S3 server for backups", "about 5 s", () =>
      startObjectStore(folders, daemons, s3Program),
    ),
    ...nodes.map((node) =>
      step(reportToStderr, `Starting ${node.name}: containerd, kubelet, kube-proxy`, "about 5 s", () =>
        startNodeNamespaces(node, programs),
      ),
    ),
  ]);
  await routeServices(first);
}

/** Makes a node's namespaces when they are not there, and starts the node's programs in them. */
async function startNodeNamespaces(node: NodeAddresses, programs: NodePrograms): Promise<void> {
  const recordFile = join(folders.records, `${node.name}.json`);
  let machine: ProcessIdentity | undefined = readRecord(recordFile);
  if (!machine || !holdsNamespaces(machine)) {
    mkdirSync(join(folders.logs, node.name), { recursive: true });
    machine = await startNamespaces([programs.pause, node.name], join(folders.logs, node.name, "namespaces.log"));
    await connectNode(node, machine.pid);
    writeRecord(recordFile, machine);
  }
  const self = fileURLToPath(import.meta.url);
  const command = enterArguments(machine.pid, [
    process.execPath,
    ...scriptArguments(self, ["node", String(node.index)]),
  ]);
  const code = await runVisibly("nsenter", command);
  if (code !== 0) throw new Error(`${node.name} did not start`);
}

/** Lets programs that are run beside the control plane use the cluster's names. */
async function useClusterDns(): Promise<void> {
  const file = join(folders.config, "resolv.conf");
  // Mounting twice would only stack the same file.
  if (existsSync("/etc/resolv.conf") && readFileSync("/etc/resolv.conf", "utf8").includes(network.controlPlane)) return;
  mkdirSync(folders.config, { recursive: true });
  const domains = ["default.svc", "svc"].map((prefix) => `${prefix}.${network.clusterDomain}`);
  writeFileSync(
    file,
    `nameserver ${network.controlPlane}\nsearch ${domains.join(" ")} ${network.clusterDomain}\noptions ndots:5\n`,
  );
  if (existsSync("/etc/resolv.conf")) await coverFile("/etc/resolv.conf", file);
}

await runMain(async () => {
  endWithParent();
  const [role, ...values] = process.argv.slice(2);
  if (role === "control-plane") {
    await startControlPlaneAndNodes(Number(values[0]), values[1] === "fsync", values[2] ?? "");
  } else if (role === "node") {
    const node = nodeAddresses(Number(values[0]));
    await startNode(folders, node, (await ensureNodePrograms()).archive);
  } else {
    throw new Error(`unknown role ${role}`);
  }
});
