import { describe, expect, it } from "vitest";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import type { Node, Pod } from "../../../../src/api/generated/kubernetes.ts";
import { annotations } from "../../../../src/api/labels.ts";
import { formatLeaseVoters } from "../../../../src/api/lease-voters.ts";
import type { PostgresStatus } from "../../../../src/api/pg-status.ts";
import { phases } from "../../../../src/api/phases.ts";
import type { ObservedCluster, PolledInstance } from "../../../../src/plan/cluster/observed.ts";
import {
  aHealthyCluster,
  answered,
  aPod,
  aStatus,
  healthyStatus,
  now,
  plan,
  primaryStatus,
  silent,
  stepsOf,
  withPods,
} from "./fixtures.ts";

interface Case {
  cluster: Cluster;
  observed: ObservedCluster;
}

/** A cluster of three whose primary's pod is gone; the standbys answer as given. */
function withoutPrimary(
  statuses: Partial<Record<"c-2" | "c-3", Partial<PostgresStatus>>> = {},
  status: Partial<NonNullable<Cluster["status"]>> = {},
  spec: Partial<Cluster["spec"]> = {},
): Case {
  const { cluster, observed } = aHealthyCluster(spec);
  const pods = observed.pods.slice(1);
  const instances = pods.map((pod): PolledInstance => {
    const name = pod.metadata.name as "c-2" | "c-3";
    return answered(pod, aStatus({ isWalReceiverActive: false, ...statuses[name] }));
  });
  return {
    cluster: { ...cluster, status: { ...healthyStatus(), ...status } },
    observed: { ...withPods(observed, pods), instances },
  };
}

const target = ({ cluster, observed }: Case, at: Date = now) => plan(cluster, observed, at).status.targetPrimary;

describe("a lost primary", () => {
  it("is followed by a successor in one pass when nobody receives WAL any more", () => {
    const { cluster, observed } = withoutPrimary();
    const result = plan(cluster, observed);
    expect(stepsOf(result.actions)).toEqual(["event FailingOver", "event FailoverTarget"]);
    const targets = result.actions.flatMap((it) => (it.kind === "patchStatus" ? [it.patch["targetPrimary"]] : []));
    expect(targets).toEqual(["pending", "c-2"]);
    expect(result.status).toMatchObject({ phase: phases.failingOver, phaseReason: "Failing over from c-1 to c-2" });
  });

  it("is waited for while a standby still receives WAL, asking again every 200 ms, and told once", () => {
    const first = withoutPrimary({ "c-3": { isWalReceiverActive: true } });
    const begun = plan(first.cluster, first.observed);
    expect(begun.status.targetPrimary).toBe("pending");
    expect(begun.requeueAfterMs).toBe(200);
    expect(stepsOf(begun.actions)).toEqual(["event FailingOver"]);
    const again = plan({ ...first.cluster, status: begun.status }, first.observed);
    expect(again.actions).toEqual([]);
    expect(again.requeueAfterMs).toBe(200);
    const later = withoutPrimary();
    const chosen = plan({ ...later.cluster, status: again.status }, later.observed);
    expect(stepsOf(chosen.actions)).toEqual(["event FailoverTarget"]);
    expect(chosen.status.targetPrimary).toBe("c-2");
  });

  it.each([
    ["the one voter left, whoever has more WAL", ["c-1", "c-3"], "c-3"],
    ["nobody when no voter is left: nobody else could take the lease", ["c-1"], "c-1"],
    ["the first when the lease keeps no list", undefined, "c-2"],
  ])("is followed by %s", (_name, voters, successor) => {
    const lost = withoutPrimary({ "c-2": { receivedLsn: "0/FF000000" } });
    const lease = lost.observed.lease as NonNullable<ObservedCluster["lease"]>;
    const listed = voters && { [annotations.leaseVoters]: formatLeaseVoters({ voters, holderUID: "uid" }) };
    const metadata = { ...lease.metadata, annotations: { ...lease.metadata.annotations, ...listed } };
    const observed = { ...lost.observed, lease: { ...lease, metadata } };
    const result = plan(lost.cluster, observed);
    expect(result.status.targetPrimary).toBe(successor);
    const heals = stepsOf(result.actions).some((step) => step === "createPod c-1");
    expect(heals).toBe(successor === "c-1");
  });

  it("is never followed by a primary of an older timeline, whatever WAL that one has", () => {
    const stale = primaryStatus({ timeLineID: 1, currentLsn: "0/FF000000" });
    const lost = withoutPrimary({ "c-2": stale, "c-3": { timeLineID: 2 } }, { timelineID: 2 });
    const result = plan(lost.cluster, lost.observed);
    expect(result.status.targetPrimary).toBe("c-3");
    expect(result.status.timelineID).toBe(2);
  });

  it("has no successor when only a primary of an older timeline answers", () => {
    const stale = primaryStatus({ timeLineID: 1 });
    const { cluster, observed } = withoutPrimary({ "c-2": stale }, { timelineID: 2 });
    const instances = observed.instances.filter(({ name }) => name === "c-2");
    const pods = observed.pods.filter((pod) => pod.metadata.name === "c-2");
    const result = plan(cluster, { ...withPods(observed, pods), instances });
    expect(result.status.targetPrimary).toBe("c-1");
  });

  it("keeps its pod out of the Service if there is one", () => {
    const { cluster, observed } = aHealthyCluster();
    const failing = aPod(cluster, 1, "unready");
    const pods = [failing, ...observed.pods.slice(1)];
    const instances = [silent(failing), ...observed.instances.slice(1)];
    const result = plan(cluster, { ...observed, pods, instances });
    expect(stepsOf(result.actions)).toEqual(["event FailingOver", "patchPod c-1"]);
  });

  it("is not followed while its pod answers and only its readiness fails", () => {
    const { cluster, observed } = aHealthyCluster();
    const failing = aPod(cluster, 1, "unready");
    const instances = [answered(failing, primaryStatus()), ...observed.instances.slice(1)];
    const result = plan(cluster, { ...observed, pods: [failing, ...observed.pods.slice(1)], instances });
    expect(result.status.targetPrimary).toBe("c-1");
    expect(stepsOf(result.actions)).toEqual([]);
    expect(result.requeueAfterMs).toBe(10_000);
  });

  it.each<[string, Parameters<typeof withoutPrimary>[0], string]>([
    ["the most WAL received", { "c-3": { receivedLsn: "0/5000001" } }, "c-3"],
    ["the most WAL replayed when received is equal", { "c-3": { replayLsn: "0/5000001" } }, "c-3"],
    [
      "more WAL before a timeline that its last restartpoint tells",
      { "c-2": { timeLineID: 2 }, "c-3": { receivedLsn: "0/9000000" } },
      "c-3",
    ],
    ["the newer timeline when the WAL is equal", { "c-3": { timeLineID: 2 } }, "c-3"],
    [
      "the most WAL replayed if it has not streamed since its start",
      { "c-2": { receivedLsn: "0/6000000" }, "c-3": { receivedLsn: "", replayLsn: "0/9000000" } },
      "c-3",
    ],
    [
      "a position at all",
      { "c-2": { receivedLsn: "?", replayLsn: "" }, "c-3": { receivedLsn: "0/1", replayLsn: "?" } },
      "c-3",
    ],
    [
      "a readable position before an unreadable one",
      { "c-2": { receivedLsn: "?" }, "c-3": { receivedLsn: "0/1" } },
      "c-3",
    ],
    ["the first name when all is equal", {}, "c-2"],
    ["one that is sure to be available", { "c-2": { mightBeUnavailable: true } }, "c-3"],
    ["one that is not being rewound", { "c-2": { isPgRewindRunning: true } }, "c-3"],
  ])("is followed by the standby with %s", (_, statuses, expected) => {
    expect(target(withoutPrimary(statuses))).toBe(expected);
  });

  it("is not followed by a fenced standby", () => {
    const { cluster, observed } = withoutPrimary();
    const annotations = { "cnpg.io/fencedInstances": '["c-2"]' };
    const fenced = { ...cluster, metadata: { ...cluster.metadata, annotations } };
    expect(target({ cluster: fenced, observed })).toBe("c-3");
  });

  it("is given its pod back when no standby may take over", () => {
    const { cluster, observed } = withoutPrimary({
      "c-2": { mightBeUnavailable: true },
      "c-3": { mightBeUnavailable: true },
    });
    const result = plan(cluster, observed);
    expect(result.status.targetPrimary).toBe("c-1");
    expect(stepsOf(result.actions)).toEqual(["createPod c-1"]);
  });

  it("that is fenced is left alone", () => {
    const { cluster, observed } = withoutPrimary();
    const annotations = { "cnpg.io/fencedInstances": '["c-1"]' };
    expect(target({ cluster: { ...cluster, metadata: { ...cluster.metadata, annotations } }, observed })).toBe("c-1");
  });
});

describe("failoverDelay", () => {
  const spec = { failoverDelay: 30 };

  it("notes when the failure began and gives the primary no pod meanwhile, which would be well before it is over", () => {
    const { cluster, observed } = withoutPrimary({}, {}, spec);
    const result = plan(cluster, observed);
    expect(result.status.targetPrimary).toBe("c-1");
    expect(result.status.currentPrimaryFailingSinceTimestamp).toBe("2026-01-02T03:04:05.678000Z");
    expect(stepsOf(result.actions)).toEqual([]);
    expect(result.requeueAfterMs).toBeLessThanOrEqual(1_000);
  });

  it.each([
    [29_000, "c-1"],
    [30_000, "c-2"],
  ])("after %i ms leaves the target at %s", (elapsed, expected) => {
    const since = { currentPrimaryFailingSinceTimestamp: "2026-01-02T03:04:05.678000Z" };
    expect(target(withoutPrimary({}, since, spec), new Date(now.getTime() + elapsed))).toBe(expected);
  });

  it("starts anew when the primary was well in between", () => {
    const { cluster, observed } = aHealthyCluster(spec);
    const status = { ...healthyStatus(), currentPrimaryFailingSinceTimestamp: "2026-01-02T03:04:05.678000Z" };
    expect(plan({ ...cluster, status }, observed).status.currentPrimaryFailingSinceTimestamp).toBeUndefined();
  });
});

describe("the failover quorum", () => {
  const spec = { postgresql: { synchronous: { method: "any" as const, number: 1, failoverQuorum: true } } };
  const quorum = (standbyNames: string[], standbyNumber: number): Partial<ObservedCluster> => ({
    failoverQuorum: {
      apiVersion: "postgresql.cnpg.io/v1",
      kind: "FailoverQuorum",
      metadata: {
        name: "c",
        namespace: "ns",
        labels: {},
        ownerReferences: [
          { apiVersion: "postgresql.cnpg.io/v1", kind: "Cluster", name: "c", uid: "uid-c", controller: true },
        ],
      },
      status: { method: "ANY", standbyNames, standbyNumber, primary: "c-1" },
    },
  });

  it.each<[string, Partial<ObservedCluster>, string]>([
    ["two reachable of two, one acknowledging: allowed", quorum(["c-2", "c-3"], 1), "c-2"],
    ["two reachable of three, one acknowledging: denied", quorum(["c-2", "c-3", "c-4"], 1), "c-1"],
    ["two reachable of three, two acknowledging: allowed", quorum(["c-2", "c-3", "c-4"], 2), "c-2"],
    ["nothing known: denied", {}, "c-1"],
    ["emptied before a reload: denied", quorum([], 0), "c-1"],
  ])("%s", (_, fields, expected) => {
    const { cluster, observed } = withoutPrimary({}, {}, spec);
    expect(target({ cluster, observed: { ...observed, ...fields } })).toBe(expected);
  });

  it("that denies tells why, and what a person can do", () => {
    const { cluster, observed } = withoutPrimary({}, {}, spec);
    const { actions } = plan(cluster, { ...observed, ...quorum(["c-2", "c-3", "c-4"], 1) });
    const told = actions.filter((it) => it.kind === "event" && it.event === "FailoverQuorumDenied");
    expect(told.map((it) => it.reason)).toEqual([
      "No failover from c-1: only 2 of 3 synchronous standbys can take over, 1 acknowledge. It begins once enough of them " +
        "answer and are ready; to go on with what the others have and lose what they may lack, set " +
        "spec.postgresql.synchronous.failoverQuorum to false",
    ]);
  });

  it("that denies does not start the delay anew", () => {
    const since = { currentPrimaryFailingSinceTimestamp: "2026-01-02T03:00:00.000000Z" };
    const { cluster, observed } = withoutPrimary({}, since, { ...spec, failoverDelay: 30 });
    const result = plan(cluster, observed);
    expect(result.status.currentPrimaryFailingSinceTimestamp).toBe(since.currentPrimaryFailingSinceTimestamp);
    expect(stepsOf(result.actions)).not.toContain("event FailingOver");
  });
});

describe("an unfinished change of primary", () => {
  it("is taken back when nobody is ready", () => {
    const { cluster, observed } = withoutPrimary({}, { targetPrimary: "pending" });
    const pods = observed.pods.map((it) => ({ ...it, status: { ...it.status, conditions: [] } })) as Pod[];
    const result = plan(cluster, withPods(observed, pods));
    expect(result.status.targetPrimary).toBe("c-1");
  });

  it("is taken back when the old primary is well after all", () => {
    const { cluster, observed } = aHealthyCluster();
    const result = plan({ ...cluster, status: { ...healthyStatus(), targetPrimary: "pending" } }, observed);
    expect(result.status.targetPrimary).toBe("c-1");
  });

  it("to a successor that lost its pod goes back to the old primary if that runs", () => {
    const { cluster, observed } = aHealthyCluster();
    const pods = observed.pods.filter((it) => it.metadata.name !== "c-2");
    const status = { ...healthyStatus(), targetPrimary: "c-2" };
    expect(plan({ ...cluster, status }, withPods(observed, pods)).status.targetPrimary).toBe("c-1");
  });

  it("to a successor that lost its pod goes on to the next if the old primary is gone too", () => {
    const { cluster, observed } = withoutPrimary({}, { targetPrimary: "c-2" });
    const pods = observed.pods.filter((it) => it.metadata.name === "c-3");
    const result = plan(cluster, withPods(observed, pods));
    expect(result.status.targetPrimary).toBe("c-3");
    expect(result.status.phase).toBe(phases.switchover);
    expect(result.actions.filter((it) => it.kind === "event").map((it) => it.message)).toEqual([
      "Target primary isn't healthy, switching target from c-2 to c-3",
    ]);
  });

  it.each<[string, { ready: boolean; old: boolean; elapsedMs: number }, string]>([
    [
      "nobody ready for a minute and the old primary at hand: taken back",
      { ready: false, old: true, elapsedMs: 60_000 },
      "c-1",
    ],
    ["nobody ready for less: waited for", { ready: false, old: true, elapsedMs: 59_999 }, "c-2"],
    ["nobody ready and the old primary gone: waited for", { ready: false, old: false, elapsedMs: 90_000 }, "c-2"],
    ["somebody ready: waited for", { ready: true, old: true, elapsedMs: 90_000 }, "c-2"],
  ])("with a successor whose pod runs, %s", (_, { ready, old, elapsedMs }, expected) => {
    const { cluster, observed } = aHealthyCluster();
    const targetPrimaryTimestamp = new Date(now.getTime() - elapsedMs).toISOString();
    const status = { ...healthyStatus(), targetPrimary: "c-2", targetPrimaryTimestamp };
    const pods = [1, 2, 3].filter((it) => old || it > 1).map((it) => aPod(cluster, it, ready ? "ready" : "unready"));
    const instances = pods.map((pod) => silent(pod));
    expect(plan({ ...cluster, status }, { ...observed, pods, instances }).status.targetPrimary).toBe(expected);
  });

  it("is left to the successor while its pod runs", () => {
    const { cluster, observed } = aHealthyCluster();
    const result = plan({ ...cluster, status: { ...healthyStatus(), targetPrimary: "c-2" } }, observed);
    expect(stepsOf(result.actions)).toEqual(["patchPod c-1"]);
    expect(result.status.targetPrimary).toBe("c-2");
  });
});

describe("what is known too little to act on", () => {
  it("two primaries: nothing is touched for 5 s", () => {
    const { cluster, observed } = aHealthyCluster();
    const instances = observed.instances.map((it) =>
      it.kind === "answered" ? { ...it, status: primaryStatus() } : it,
    );
    const result = plan(cluster, { ...observed, pods: observed.pods, instances });
    expect(stepsOf(result.actions)).toEqual([]);
    expect(result.requeueAfterMs).toBe(5_000);
  });

  it("every ready instance silent: a phase, no failover", () => {
    const { cluster, observed } = aHealthyCluster();
    const result = plan(cluster, { ...observed, instances: observed.pods.map((pod) => silent(pod)) });
    expect(result.status.phase).toBe(phases.statusExtractionError);
    expect(result.requeueAfterMs).toBe(10_000);
    expect(stepsOf(result.actions)).toEqual([]);
  });

  it("a primary that is Ready and silent: an event, no failover", () => {
    const { cluster, observed } = aHealthyCluster();
    const [first, ...others] = observed.instances;
    if (!first) throw new Error("no instance");
    const result = plan(cluster, { ...observed, instances: [silent(first.pod), ...others] });
    expect(result.status.targetPrimary).toBe("c-1");
    expect(stepsOf(result.actions)).toEqual(["event PrimaryStatusCheckFailed"]);
  });

  const waits = { state: { waiting: { reason: "CrashLoopBackOff" } } };
  const starts = { state: { running: {} }, started: false };
  const hasStarted = { state: { running: {} }, started: true };
  it.each([
    ["a full disk: a phase, no failover", waits, phases.notEnoughDisk, "c-1"],
    ["a full disk, once more: a phase, no failover", starts, phases.notEnoughDisk, "c-1"],
    ["a disk that was full, and something else since: a failover", hasStarted, phases.failingOver, "pending"],
  ])("%s", (_, container, phase, target) => {
    const { cluster, observed } = aHealthyCluster();
    const pod = aPod(cluster, 1, "unready");
    const lastState = { terminated: { exitCode: 4 } };
    const known = { name: "postgres", image: "i", imageID: "", ready: false, restartCount: 1, lastState };
    const full: Pod = { ...pod, status: { ...pod.status, containerStatuses: [{ ...known, ...container }] } };
    const pods = [full, ...observed.pods.slice(1)];
    const instances = [silent(full), ...observed.instances.slice(1)];
    const result = plan(cluster, { ...observed, pods, instances });
    expect(result.status.phase).toBe(phase);
    expect(result.status.targetPrimary).toBe(target);
  });
});

describe("a drained node", () => {
  const drained: Node = { apiVersion: "v1", kind: "Node", metadata: { name: "n" }, spec: { unschedulable: true } };
  const free = (name: string): Node => ({ apiVersion: "v1", kind: "Node", metadata: { name } });

  function onNodes(
    nodes: readonly string[],
    change: (instances: PolledInstance[]) => PolledInstance[] = (it) => it,
  ): Case {
    const { cluster, observed } = aHealthyCluster();
    const pods = observed.pods.map((pod, index) => ({
      ...pod,
      spec: { ...pod.spec, nodeName: nodes[index] ?? "" },
    })) as Pod[];
    const moved = withPods(observed, pods);
    const known = [drained, free("a"), free("b")].map((it) => [it.metadata.name ?? "", it] as const);
    return { cluster, observed: { ...moved, nodes: new Map(known), instances: change([...moved.instances]) } };
  }

  it("hands the primary over to a streaming replica elsewhere", () => {
    const { cluster, observed } = onNodes(["n", "a", "b"]);
    const result = plan(cluster, observed);
    expect(result.status.targetPrimary).toBe("c-2");
    expect(result.status.phaseReason).toBe(
      "Switching over to c-2, because primary instance was running on unschedulable node n",
    );
    expect(stepsOf(result.actions)).toEqual(["event SwitchingOver"]);
  });

  it.each<[string, Case, string]>([
    ["the candidate's node is drained too", onNodes(["n", "n", "b"]), "c-1"],
    [
      "the first candidate does not stream",
      onNodes(["n", "a", "b"], (all) =>
        all.map((it) =>
          it.kind === "answered" && it.name === "c-2" ? { ...it, status: aStatus({ isWalReceiverActive: false }) } : it,
        ),
      ),
      "c-3",
    ],
    ["the primary is elsewhere", onNodes(["a", "n", "b"]), "c-1"],
  ])("when %s", (_, given, expected) => {
    expect(target(given)).toBe(expected);
  });

  it("waits while an instance is still being made", () => {
    const { cluster, observed } = onNodes(["n", "a", "b"]);
    const pods = observed.pods.slice(0, 2);
    expect(target({ cluster, observed: withPods(observed, pods) })).toBe("c-1");
  });
});
