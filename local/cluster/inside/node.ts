import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { certificatePaths } from "../../control-plane/certificates.ts";
import { tryRun } from "../../process/run.ts";
import { toolPath } from "../../tools/build.ts";
import { cacheRoot } from "../../tools/cache.ts";
import type { NodeAddresses } from "../addresses.ts";
import { componentKubeconfig, ensureNodeCertificates } from "../certificates.ts";
import { createCgroup, nodeCgroup } from "../cgroups.ts";
import { renderCniConfig } from "../config/cni.ts";
import { containerdSocket, renderContainerdConfig } from "../config/containerd.ts";
import { renderKubeProxyConfig } from "../config/kube-proxy.ts";
import { renderKubeletConfig } from "../config/kubelet.ts";
import { type ClusterFolders, type NodeFolders, nodeFolders, projectRoot } from "../folders.ts";
import { ensureImage } from "../images.ts";
import { Daemons } from "./daemon.ts";
import { setUpNodeLinks } from "./links.ts";
import { coverFolders, isPrepared } from "./mounts.ts";
import { writeIfChanged } from "./write-if-changed.ts";

const cniPlugins = ["/usr/lib/cni", "/opt/cni/bin"];

/** Starts a node's programs; runs inside the node's namespaces. */
export async function startNode(folders: ClusterFolders, node: NodeAddresses, nodeArchive: string): Promise<void> {
  const own = nodeFolders(folders, node.name);
  for (const folder of [own.containerd, own.kubelet, own.podLogs, own.volumes, own.config, own.cniConfig]) {
    mkdirSync(folder, { recursive: true });
  }
  if (!isPrepared()) {
    await coverFolders(["/run", "/var/log", "/var/lib"], [folders.root, cacheRoot(), projectRoot]);
  }
  await setUpNodeLinks(node);
  const daemons = new Daemons(join(folders.records, node.name), join(folders.logs, node.name));
  await startContainerd(node, own, daemons);
  await ensureImage(nodeArchive, own.loadedImages);
  await Promise.all([startKubelet(folders, node, own, daemons), startKubeProxy(folders, node, own, daemons)]);
}

async function startContainerd(node: NodeAddresses, own: NodeFolders, daemons: Daemons): Promise<void> {
  writeIfChanged(join(own.cniConfig, "10-cnpg-ts.conflist"), renderCniConfig(node.podSubnet, own.cniAddresses));
  const file = join(own.config, "containerd.toml");
  const text = renderContainerdConfig({
    root: own.containerd,
    cniConfig: own.cniConfig,
    cniPlugins: cniPlugins.filter((folder) => existsSync(folder)),
  });
  writeIfChanged(file, text);
  await daemons.ensure({
    name: "containerd",
    command: toolPath("containerd"),
    args: ["--config", file],
    configuration: [text],
    // It finds its shim by name.
    env: { PATH: `${dirname(toolPath("containerd"))}:${process.env["PATH"] ?? ""}` },
    ready: async () => (await tryRun(toolPath("ctr"), ["--address", containerdSocket, "version"])).code === 0,
  });
}

async function startKubelet(
  folders: ClusterFolders,
  node: NodeAddresses,
  own: NodeFolders,
  daemons: Daemons,
): Promise<void> {
  const credentials = ensureNodeCertificates(folders, node.index, own.config);
  const cgroup = nodeCgroup(folders.root, node.name);
  createCgroup(cgroup);
  const file = join(own.config, "kubelet.yaml");
  const text = renderKubeletConfig({
    authorityFile: certificatePaths(folders.pki).authority,
    certificateFile: credentials.certificateFile,
    keyFile: credentials.keyFile,
    cgroupParent: cgroup,
    podLogs: own.podLogs,
    volumePlugins: join(own.root, "volume-plugins"),
  });
  writeIfChanged(file, text);
  await daemons.ensure({
    name: "kubelet",
    command: toolPath("kubelet"),
    args: [
      `--config=${file}`,
      `--kubeconfig=${credentials.kubeconfig}`,
      `--root-dir=${own.kubelet}`,
      `--hostname-override=${node.name}`,
      `--node-ip=${node.address}`,
    ],
    configuration: [text],
    ready: () => answers("http://127.0.0.1:10248/healthz"),
  });
}

async function startKubeProxy(
  folders: ClusterFolders,
  node: NodeAddresses,
  own: NodeFolders,
  daemons: Daemons,
): Promise<void> {
  const file = join(own.config, "kube-proxy.yaml");
  const text = renderKubeProxyConfig(node.name, componentKubeconfig(folders, "kube-proxy"));
  writeIfChanged(file, text);
  await daemons.ensure({
    name: "kube-proxy",
    command: toolPath("kube-proxy"),
    args: [`--config=${file}`],
    configuration: [text],
    ready: () => answers("http://127.0.0.1:10256/healthz"),
  });
}

async function answers(url: string): Promise<boolean> {
  return (await fetch(url).catch(() => undefined))?.ok ?? false;
}
