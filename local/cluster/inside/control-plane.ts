import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { apiServerArguments, etcdArguments } from "../../control-plane/arguments.ts";
import { certificatePaths } from "../../control-plane/certificates.ts";
import { isApiServerReady } from "../../control-plane/ready.ts";
import { run, tryRun } from "../../process/run.ts";
import { waitFor } from "../../process/wait.ts";
import { toolPath } from "../../tools/build.ts";
import { type NodeAddresses, network } from "../addresses.ts";
import { componentKubeconfig } from "../certificates.ts";
import { controllerManagerArguments, schedulerArguments } from "../config/control-plane.ts";
import { coreDnsReady, renderCorefile } from "../config/core-dns.ts";
import { csiManifests } from "../config/csi.ts";
import { renderHelperPod, renderStorageConfig, storageArguments, storageManifests } from "../config/storage.ts";
import { type ClusterFolders, nodeFolders } from "../folders.ts";
import { startCsi } from "./csi.ts";
import type { Daemons } from "./daemon.ts";
import { writeIfChanged } from "./write-if-changed.ts";

/** Starts etcd and kube-apiserver and waits until the API server has set up its own roles. */
export async function startApiServer(folders: ClusterFolders, daemons: Daemons, fsync: boolean): Promise<void> {
  mkdirSync(folders.sockets, { recursive: true, mode: 0o700 });
  mkdirSync(folders.config, { recursive: true });
  const etcdSocket = join(folders.sockets, "etcd");
  await daemons.ensure({
    name: "etcd",
    command: toolPath("etcd"),
    args: etcdArguments({ dataFolder: folders.etcd, socket: etcdSocket, fsync }),
    cwd: folders.sockets,
  });
  const files = certificatePaths(folders.pki);
  const authority = readFileSync(files.authority, "utf8");
  const token = readFileSync(files.tokens, "utf8").split(",")[0] ?? "";
  await daemons.ensure({
    name: "kube-apiserver",
    command: toolPath("kube-apiserver"),
    args: apiServerArguments({
      certificates: folders.pki,
      etcdSocket,
      bindAddress: "0.0.0.0",
      port: network.apiPort,
      serviceSubnet: network.serviceSubnet,
      advertiseAddress: network.controlPlane,
      serviceAccounts: true,
    }),
    ready: () => isApiServerReady(`https://${network.controlPlane}:${network.apiPort}`, authority, token),
  });
  await waitForOwnRoles(folders);
}

/** Starts what acts on the API server's objects. */
export async function startControllers(
  folders: ClusterFolders,
  daemons: Daemons,
  nodes: readonly NodeAddresses[],
): Promise<void> {
  const files = certificatePaths(folders.pki);
  const controllerManager = componentKubeconfig(folders, "kube-controller-manager");
  await Promise.all([
    daemons.ensure({
      name: "kube-controller-manager",
      command: toolPath("kube-controller-manager"),
      args: controllerManagerArguments({
        kubeconfig: controllerManager,
        authorityFile: files.authority,
        authorityKeyFile: files.authorityKey,
        serviceAccountKeyFile: files.serviceAccountKey,
      }),
    }),
    daemons.ensure({
      name: "kube-scheduler",
      command: toolPath("kube-scheduler"),
      args: schedulerArguments(componentKubeconfig(folders, "kube-scheduler")),
    }),
    startDns(folders, daemons),
    startStorage(folders, daemons, nodes),
    startCsi(
      folders,
      daemons,
      nodes.map(({ name }) => name),
    ),
  ]);
}

async function startDns(folders: ClusterFolders, daemons: Daemons): Promise<void> {
  const file = join(folders.config, "Corefile");
  const text = renderCorefile(componentKubeconfig(folders, "coredns"));
  writeIfChanged(file, text);
  await daemons.ensure({
    name: "coredns",
    command: toolPath("coredns"),
    args: ["-conf", file],
    configuration: [text],
    ready: async () => (await fetch(coreDnsReady).catch(() => undefined))?.ok ?? false,
  });
}

async function startStorage(folders: ClusterFolders, daemons: Daemons, nodes: readonly NodeAddresses[]): Promise<void> {
  await kubectl(
    folders,
    ["apply", "--server-side", "--force-conflicts", "-f", "-"],
    list([...storageManifests(), ...csiManifests()]),
  );
  const configFile = join(folders.config, "storage.json");
  const helperPodFile = join(folders.config, "helper-pod.json");
  const config = renderStorageConfig(new Map(nodes.map((node) => [node, nodeFolders(folders, node.name).volumes])));
  writeIfChanged(configFile, config);
  writeIfChanged(helperPodFile, renderHelperPod());
  await daemons.ensure({
    name: "local-path-provisioner",
    command: toolPath("local-path-provisioner"),
    args: storageArguments(configFile, helperPodFile, componentKubeconfig(folders, "local-path-provisioner")),
    configuration: [config, renderHelperPod()],
  });
}

/** The controller manager ends at once when it comes before the roles that let it read its configuration. */
async function waitForOwnRoles(folders: ClusterFolders): Promise<void> {
  const needed = [
    ["role", "extension-apiserver-authentication-reader", "--namespace=kube-system"],
    ["clusterrolebinding", "system:kube-controller-manager"],
  ];
  for (const args of needed) {
    await waitFor(
      `${args[0]} ${args[1]}`,
      async () => (await tryRun(toolPath("kubectl"), [...adminArguments(folders), "get", ...args])).code === 0,
      { timeoutMs: 60_000, everyMs: 200 },
    );
  }
}

/** Runs kubectl inside the cluster's namespaces. */
export function kubectl(folders: ClusterFolders, args: readonly string[], input?: string): Promise<string> {
  return run(toolPath("kubectl"), [...adminArguments(folders), ...args], input === undefined ? {} : { input });
}

function adminArguments(folders: ClusterFolders): string[] {
  // Its rights are an administrator's, and its address is the one in here.
  return [`--kubeconfig=${componentKubeconfig(folders, "local-path-provisioner")}`];
}

function list(items: readonly object[]): string {
  return JSON.stringify({ apiVersion: "v1", kind: "List", items });
}
