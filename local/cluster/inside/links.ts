import { existsSync, writeFileSync } from "node:fs";
import { run } from "../../process/run.ts";
import { type NodeAddresses, network } from "../addresses.ts";

const ip = (...args: string[]) => run("ip", args);

/** Sets up the control plane's network: a bridge that carries its address and, later, a link to each node. */
export async function setUpControlPlaneLinks(): Promise<void> {
  writeFileSync("/proc/sys/net/ipv4/ip_forward", "1");
  await ip("link", "set", "lo", "up");
  if (!hasLink(network.bridge)) await ip("link", "add", network.bridge, "type", "bridge");
  await ip("addr", "replace", `${network.controlPlane}/${network.prefix}`, "dev", network.bridge);
  await ip("link", "set", network.bridge, "up");
}

/** Connects a node's new network namespace, held by that process, to the control plane's bridge. */
export async function connectNode(node: NodeAddresses, pid: number): Promise<void> {
  // The link of an earlier namespace of this node leads nowhere.
  if (hasLink(node.link)) await ip("link", "delete", node.link);
  await ip("link", "add", node.link, "type", "veth", "peer", "name", "eth0", "netns", String(pid));
  await ip("link", "set", node.link, "master", network.bridge, "up");
  await ip("route", "replace", node.podSubnet, "via", node.address);
}

/** Lets programs beside the control plane reach Services, through a node's kube-proxy. */
export async function routeServices(node: NodeAddresses): Promise<void> {
  await ip("route", "replace", network.serviceSubnet, "via", node.address);
}

/** Sets up a node's own side, from inside its namespace. */
export async function setUpNodeLinks(node: NodeAddresses): Promise<void> {
  writeFileSync("/proc/sys/net/ipv4/ip_forward", "1");
  await ip("link", "set", "lo", "up");
  await ip("addr", "replace", `${node.address}/${network.prefix}`, "dev", "eth0");
  await ip("link", "set", "eth0", "up");
  await ip("route", "replace", "default", "via", network.controlPlane);
}

function hasLink(name: string): boolean {
  return existsSync(`/proc/sys/net/ipv4/conf/${name}`);
}
