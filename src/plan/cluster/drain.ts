import { isReplicaCluster } from "../../api/cluster-facts.ts";
import type { Node } from "../../api/generated/kubernetes.ts";
import { isFenced, parseFencing } from "../../api/markers.ts";
import { phases } from "../../api/phases.ts";
import { ineligibility } from "./election.ts";
import type { AnsweredInstance, PolledInstance } from "./observed.ts";
import { flushStatus, type Pass, recordEvent, setPhase, setTargetPrimary, type Wait } from "./pass.ts";
import { leaseVoters } from "./primary-lease.ts";

/** Whether a node is being emptied: cordoned, or marked by one of the taints that announce it. */
export function isDrained(node: Node, drainTaints: readonly string[]): boolean {
  return (
    (node.spec?.unschedulable ?? false) || (node.spec?.taints ?? []).some((taint) => drainTaints.includes(taint.key))
  );
}

/**
 * Moves the primary away from a node that is being drained (reference: cluster controller §5.12). `null` when the rule
 * does not apply; the choice rests on node, readiness and WAL alone, never on names.
 */
export function planDrain(
  pass: Pass,
  sorted: readonly PolledInstance[],
  current: string,
): { wait: Wait | null } | null {
  const primary = findPrimary(pass, sorted, current);
  if (!primary) return null;
  const node = primary.pod.spec?.nodeName;
  if (!node || !isNodeDrained(pass, node)) return null;
  const elsewhere = sorted.filter((it) => it.name !== current && it.pod.spec?.nodeName !== node);
  const hasFailed = (pass.status.instancesStatus?.["failed"] ?? []).length > 0;
  const wanted = pass.cluster.spec.instances;
  const isSettling = pass.status.readyInstances !== wanted || elsewhere.length < wanted - 1;
  if (!hasFailed && isSettling && !sitsWholeOnNode(sorted, node)) return { wait: null };
  const successor = elsewhere.find((it): it is AnsweredInstance => isSuccessor(pass, it));
  if (!successor) return { wait: null };
  const because = `primary instance was running on unschedulable node ${node}`;
  recordEvent(
    pass,
    "Normal",
    "SwitchingOver",
    `Current primary is running on unschedulable node ${node}, switching over from ${current} to ${successor.name}`,
  );
  setPhase(pass, phases.switchover, `Switching over to ${successor.name}, because ${because}`);
  setTargetPrimary(pass, successor.name);
  flushStatus(pass, because);
  return { wait: { requeueAfterMs: 1_000, because } };
}

/** The primary as it answered; in a replica cluster the designated one, which is a standby like the others. */
function findPrimary(pass: Pass, sorted: readonly PolledInstance[], current: string): AnsweredInstance | undefined {
  if (isReplicaCluster(pass.cluster)) {
    const designated = sorted.find((it) => it.name === current);
    return designated?.kind === "answered" && designated.ready ? designated : undefined;
  }
  const [first] = sorted;
  return first?.kind === "answered" && first.name === current && first.status.isPrimary ? first : undefined;
}

function isNodeDrained(pass: Pass, name: string | undefined): boolean {
  const node = name ? pass.observed.nodes.get(name) : undefined;
  return node ? isDrained(node, pass.observed.operator.drainTaints) : false;
}

function isSuccessor(pass: Pass, it: PolledInstance): boolean {
  if (it.kind !== "answered" || !it.ready || !it.status.isWalReceiverActive) return false;
  if (isNodeDrained(pass, it.pod.spec?.nodeName)) return false;
  const isFencedHere = isFenced(parseFencing(pass.cluster), it.name);
  return ineligibility(it, isFencedHere, pass.status.timelineID, leaseVoters(pass)) === null;
}

/** With every instance on the drained node there is nothing to wait for: the first to come back elsewhere will do. */
function sitsWholeOnNode(sorted: readonly PolledInstance[], node: string): boolean {
  return sorted.every((it) => it.pod.spec?.nodeName === node);
}
