import { enterNode } from "../../local/cluster/enter.ts";
import { run } from "../../local/process/run.ts";

/** Runs a program on a node, in its network, mounts and processes. */
export function onNode(node: string, line: readonly string[]): Promise<string> {
  const [command = "", ...args] = [...enterNode(node), ...line];
  return run(command, args);
}
