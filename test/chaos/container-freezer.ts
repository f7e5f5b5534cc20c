import { nodeAddresses } from "../../local/cluster/addresses.ts";
import { containerdSocket } from "../../local/cluster/config/containerd.ts";
import { toolPath } from "../../local/tools/build.ts";
import { getObject } from "../e2e/support/kubectl.ts";
import type { PlacedInstance, Scene } from "./fault.ts";
import { onNode } from "./on-node.ts";

/** Freezes an instance's PostgreSQL container as a paused machine would: nothing in it runs, nothing of it ends. Resolves with what thaws it. */
export async function freezeContainer(
  { cluster }: Scene,
  { name, node }: PlacedInstance,
): Promise<() => Promise<void>> {
  const pod = await getObject<{ status: { containerStatuses: { name: string; containerID: string }[] } }>(
    cluster.namespace,
    "pod",
    name,
  );
  const status = pod?.status.containerStatuses.find((container) => container.name === "postgres");
  const id = status?.containerID.replace("containerd://", "");
  if (!id) throw new Error(`pod ${cluster.namespace}/${name} has no container postgres`);
  await ctr(node, "tasks", "pause", id);
  // The kubelet may have ended it meanwhile, which thaws it too.
  return () =>
    ctr(node, "tasks", "resume", id).then(
      () => undefined,
      () => undefined,
    );
}

function ctr(node: number, ...args: string[]): Promise<string> {
  const program = [toolPath("ctr"), "--address", containerdSocket, "--namespace", "k8s.io"];
  return onNode(nodeAddresses(node).name, [...program, ...args]);
}
