import { describe, expect, it } from "vitest";
import type { Node } from "../../../../src/api/generated/kubernetes.ts";
import type { PolledInstance } from "../../../../src/plan/cluster/observed.ts";
import { aHealthyCluster, answered, aStatus, plan, primaryStatus } from "./fixtures.ts";

type Standby = "well" | "cordoned" | "not ready" | "no receiver";
const names = ["c-1", "c-2", "c-3"];

/** Who is to be primary once the node of the one with this name is drained; the others are as given, in the order of their names. */
function targetAfterDrain(primary: string, others: readonly [Standby, Standby], receivedLsn: readonly string[] = []) {
  const { cluster, observed } = aHealthyCluster();
  const standbys = names.filter((name) => name !== primary);
  const stateOf = (name: string) => (name === primary ? undefined : others[standbys.indexOf(name)]);
  const instances = observed.pods.map((pod): PolledInstance => {
    const name = pod.metadata.name ?? "";
    const placed = { ...pod, spec: { containers: [], ...pod.spec, nodeName: `node-of-${name}` } };
    if (name === primary) return answered(placed, primaryStatus());
    const receiver = stateOf(name) !== "no receiver";
    const lsn = receivedLsn[standbys.indexOf(name)];
    const status = aStatus({ isWalReceiverActive: receiver, ...(lsn ? { receivedLsn: lsn } : {}) });
    return { ...answered(placed, status), ready: stateOf(name) !== "not ready" };
  });
  const nodes = names.map((name): [string, Node] => {
    const unschedulable = name === primary || stateOf(name) === "cordoned";
    const metadata = { name: `node-of-${name}` };
    return [metadata.name, { apiVersion: "v1", kind: "Node", metadata, spec: { unschedulable } }];
  });
  const status = { ...cluster.status, currentPrimary: primary, targetPrimary: primary };
  const result = plan(
    { ...cluster, status },
    { ...observed, pods: instances.map((it) => it.pod), instances, nodes: new Map(nodes) },
  );
  const chosen = result.status.targetPrimary ?? "";
  return chosen === primary ? "stays" : (["first", "second"][standbys.indexOf(chosen)] ?? chosen);
}

describe.each(names)("the node of the primary %s is drained", (primary) => {
  it.each<[string, readonly [Standby, Standby], readonly string[], string]>([
    ["both standbys are well", ["well", "well"], [], "first"],
    ["the second has received more", ["well", "well"], ["0/5000000", "0/6000000"], "second"],
    ["the first's node is drained too", ["cordoned", "well"], [], "second"],
    ["the second's node is drained too", ["well", "cordoned"], [], "first"],
    ["every node is drained", ["cordoned", "cordoned"], [], "stays"],
    ["the first receives nothing", ["no receiver", "well"], [], "second"],
    ["the second receives nothing", ["well", "no receiver"], [], "first"],
    ["the first has failed", ["not ready", "well"], [], "second"],
    ["the second has failed", ["well", "not ready"], [], "first"],
  ])("and %s", (_about, others, received, expected) => {
    expect(targetAfterDrain(primary, others, received)).toBe(expected);
  });
});
