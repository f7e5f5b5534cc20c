import { network, nodeAddresses } from "../../local/cluster/addresses.ts";
import { containerdSocket } from "../../local/cluster/config/containerd.ts";
import { enterNode } from "../../local/cluster/enter.ts";
import { run } from "../../local/process/run.ts";
import { toolPath } from "../../local/tools/build.ts";
import { getObject } from "../e2e/support/kubectl.ts";
import type { Scene } from "./faults.ts";

/** A container whose processes all stand still. */
export interface FrozenContainer {
  readonly node: string;
  readonly id: string;
}

function onNode(node: string, line: readonly string[]): Promise<string> {
  const [command = "", ...args] = [...enterNode(node), ...line];
  return run(command, args);
}

const ctr = (node: string, ...args: string[]) =>
  onNode(node, [toolPath("ctr"), "--address", containerdSocket, "--namespace", "k8s.io", ...args]);

/** Freezes the primary's PostgreSQL container as a paused machine would: nothing in it runs, nothing of it ends. */
export async function freezeContainer({ cluster, primary, node }: Scene): Promise<FrozenContainer> {
  const pod = await getObject<{ status: { containerStatuses: { name: string; containerID: string }[] } }>(
    cluster.namespace,
    "pod",
    primary,
  );
  const status = pod?.status.containerStatuses.find(({ name }) => name === "postgres");
  const id = status?.containerID.replace("containerd://", "") ?? "";
  const frozen = { node: nodeAddresses(node).name, id };
  await ctr(frozen.node, "tasks", "pause", id);
  return frozen;
}

export async function thawContainer({ node, id }: FrozenContainer): Promise<void> {
  // The kubelet may have ended it meanwhile, which thaws it too.
  await ctr(node, "tasks", "resume", id).catch(() => undefined);
}

const table = "inet cnpg_ts_chaos";

/** Drops what the node and its pods send to the API server; everything else goes on. */
export async function cutFromApiServer(node: number): Promise<void> {
  const drop = `ip daddr ${network.controlPlane} tcp dport ${network.apiPort} drop`;
  const rules = [
    `add table ${table}`,
    `add chain ${table} forward { type filter hook forward priority 0; }`,
    `add chain ${table} output { type filter hook output priority 0; }`,
    `add rule ${table} forward ${drop}`,
    `add rule ${table} output ${drop}`,
  ];
  await onNode(nodeAddresses(node).name, ["nft", rules.join("; ")]);
}

export async function rejoinApiServer(node: number): Promise<void> {
  await onNode(nodeAddresses(node).name, ["nft", `delete table ${table}`]);
}
