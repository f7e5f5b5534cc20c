import { describe, expect, it } from "vitest";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import type { PersistentVolumeClaim, Pod } from "../../../../src/api/generated/kubernetes.ts";
import type { ObservedCluster, PolledInstance } from "../../../../src/plan/cluster/observed.ts";
import { aHealthyCluster, aJob, answered, aPod, plan, silent, stepsOf, volumesOf, withPods } from "./fixtures.ts";

const deletions = (cluster: Cluster, observed: ObservedCluster) =>
  stepsOf(plan(cluster, observed).actions).filter((it) => it.startsWith("delete") && !it.includes("Disruption"));

const gone = <T extends Pod | PersistentVolumeClaim>(object: T): T => ({
  ...object,
  metadata: { ...object.metadata, deletionTimestamp: "2026-01-02T03:04:00Z" },
});

const without = (observed: ObservedCluster, ...names: string[]) =>
  withPods(
    observed,
    observed.pods.filter((it) => !names.includes(it.metadata.name ?? "")),
  );

const replaced = (observed: ObservedCluster, name: string, by: (pod: Pod) => PolledInstance): ObservedCluster => ({
  ...observed,
  instances: observed.instances.map((it) => (it.name === name ? by(it.pod) : it)),
});

/** Three instances of which two are wanted, `c-1` primary. */
function surplus(spec: Partial<Cluster["spec"]> = {}) {
  const { cluster, observed } = aHealthyCluster(spec);
  return { cluster: { ...cluster, spec: { ...cluster.spec, instances: 2 } }, observed };
}

describe("a surplus instance stays while something is unknown", () => {
  const { cluster, observed } = surplus();
  const unready = aPod(cluster, 1, "unready");
  it.each<[string, ObservedCluster]>([
    // The removal of c-3 may have begun already, with watches that are behind.
    ["a ready instance is silent", replaced(observed, "c-3", (pod) => silent(pod))],
    ["the primary is silent", replaced(observed, "c-1", (pod) => silent(pod))],
    ["the primary is gone", without(observed, "c-1")],
    ["the primary is gone and an idle instance may hold the last transactions", without(observed, "c-1", "c-2")],
    ["the primary is not ready", { ...withPods(observed, [unready, ...observed.pods.slice(2)]) }],
    ["the primary's pod is pending", withPods(observed, [aPod(cluster, 1, "pending"), ...observed.pods.slice(2)])],
  ])("%s", (_, given) => {
    expect(deletions(cluster, given)).toEqual([]);
  });

  it("even if its quorum forbids to fail over", () => {
    const spec = { postgresql: { synchronous: { method: "any" as const, number: 1, failoverQuorum: true } } };
    const quorate = surplus(spec);
    expect(deletions(quorate.cluster, without(quorate.observed, "c-1", "c-2"))).toEqual([]);
  });
});

describe("an operator that ended in the middle of a removal", () => {
  const { cluster, observed } = surplus();
  const leaving = (name: string) => observed.volumes.map((it) => (it.metadata.name === name ? gone(it) : it));

  it("after the volume: the pod follows", () => {
    expect(deletions(cluster, { ...observed, volumes: leaving("c-3") })).toEqual(["deletePod c-3"]);
  });

  it("after the pod: the Job follows", () => {
    const jobs = [aJob(cluster, 3, "join", "running")];
    const half = { ...without(observed, "c-3"), volumes: leaving("c-3"), jobs };
    expect(deletions(cluster, half)).toEqual(["deleteJob c-3-join"]);
  });

  it("is not mistaken for a user who deletes the volume of an instance that is wanted", () => {
    const wanted = { ...cluster, spec: { ...cluster.spec, instances: 3 } };
    expect(deletions(wanted, { ...observed, volumes: leaving("c-3") })).toEqual([]);
  });

  it("never removes the primary", () => {
    expect(deletions(cluster, { ...observed, volumes: leaving("c-1") })).not.toContain("deletePod c-1");
  });
});

describe("what is left of an instance without its data volume", () => {
  const { cluster, observed } = aHealthyCluster({ walStorage: { size: "1Gi" } });
  const headless = {
    ...without(observed, "c-3"),
    volumes: observed.volumes.filter((it) => it.metadata.name !== "c-3"),
  };
  const [data] = volumesOf(cluster, 3);
  if (!data) throw new Error("the fixture has no volume");
  const withData = (change: Partial<PersistentVolumeClaim>) => ({
    ...headless,
    volumes: [...headless.volumes, { ...data, ...change }],
  });

  it.each<[string, ObservedCluster, string[]]>([
    ["goes while the primary is well", headless, ["deletePersistentVolumeClaim c-3-wal"]],
    ["stays while the primary is silent", replaced(headless, "c-1", (pod) => silent(pod)), []],
    ["stays while the primary is gone", without(headless, "c-1"), []],
    [
      "stays if the data volume only lost its serial",
      withData({ metadata: { ...data.metadata, annotations: {} } }),
      [],
    ],
    ["stays if the data volume is reported as lost", withData({ status: { phase: "Lost" } }), []],
    ["stays if the data volume lost its owner", { ...headless, orphanVolumes: [data] }, []],
    ["goes with a data volume that is being removed", withData(gone(data)), ["deletePersistentVolumeClaim c-3-wal"]],
  ])("%s", (_, given, expected) => {
    const settled = { ...cluster, status: { ...cluster.status, currentPrimary: "c-1" } };
    expect(deletions(settled, given)).toEqual(expected);
  });
});

describe("a volume that was taken out of the cluster to be kept", () => {
  it("is left alone: the new instance gets a serial of its own", () => {
    const { cluster, observed } = aHealthyCluster();
    const [kept, ...volumes] = observed.volumes.toReversed();
    if (!kept) throw new Error("the fixture has no volume");
    const { ownerReferences: _, ...metadata } = kept.metadata;
    const annotations = { ...metadata.annotations, "cnpg.io/pvcStatus": "detached" };
    const orphan = { ...kept, metadata: { ...metadata, annotations } };
    const detached = { ...without(observed, "c-3"), volumes, orphanVolumes: [orphan] };
    const steps = stepsOf(plan(cluster, detached).actions);
    expect(steps).toContain("createPersistentVolumeClaim c-4");
    expect(steps).toContain("createJob c-4-join");
    expect(steps.filter((it) => it.includes("c-3"))).toEqual([]);
  });
});

describe("an instance that the user gave up", () => {
  const { cluster, observed } = aHealthyCluster();
  const marked = observed.pods.map((pod) =>
    pod.metadata.name === "c-3"
      ? { ...pod, metadata: { ...pod.metadata, annotations: { "alpha.cnpg.io/unrecoverable": "true" } } }
      : pod,
  );

  it("is removed while there is a primary to clone from", () => {
    expect(deletions(cluster, withPods(observed, marked))).toEqual([
      "deletePersistentVolumeClaim c-3",
      "deletePod c-3",
    ]);
  });

  it("stays while the primary is gone: it may be the one to follow it", () => {
    expect(deletions(cluster, withPods(observed, marked.slice(1)))).toEqual([]);
  });
});

describe("a clone that failed for good", () => {
  const { cluster, observed } = aHealthyCluster();
  const [fresh] = volumesOf(cluster, 3, "initializing");
  if (!fresh) throw new Error("the fixture has no volume");
  const failed = {
    ...without(observed, "c-3"),
    volumes: [...observed.volumes.slice(0, 2), fresh],
    jobs: [aJob(cluster, 3, "join", "failed")],
  };

  it("does not keep other instances from getting their pods back", () => {
    expect(stepsOf(plan(cluster, without(failed, "c-2")).actions)).toEqual(["createPod c-2"]);
  });

  it("is told once they have them", () => {
    expect(plan(cluster, failed).status.phaseReason).toBe(
      "Instance creation failed for the following jobs: c-3-join. Check the job logs to investigate the cause of the failure.",
    );
  });

  it("goes with its Job when the cluster is made smaller", () => {
    const smaller = { ...cluster, spec: { ...cluster.spec, instances: 2 } };
    expect(deletions(smaller, failed)).toEqual(["deletePersistentVolumeClaim c-3", "deleteJob c-3-join"]);
  });

  it("does not cost the only instance its pod", () => {
    const alone = { ...failed, pods: [], instances: [], volumes: [failed.volumes[0], fresh].filter((it) => !!it) };
    const steps = stepsOf(plan(cluster, alone).actions);
    // The instances' role names those that are there.
    expect(steps).toEqual(["event UpdatingRole", "updateRole c", "createPod c-1"]);
  });
});

describe("a primary without a pod", () => {
  const { cluster, observed } = aHealthyCluster();
  const unready = [2, 3].map((serial) => aPod(cluster, serial, "unready"));

  it("gets it back although its standbys answer and are not ready", () => {
    const result = plan(cluster, withPods(observed, unready));
    expect(result.status.targetPrimary).toBe("c-1");
    expect(stepsOf(result.actions)).toEqual(["createPod c-1"]);
  });

  it("loses one that has ended meanwhile", () => {
    const result = plan(cluster, withPods(observed, [aPod(cluster, 1, "failed"), ...unready]));
    expect(stepsOf(result.actions)).toEqual(["deletePod c-1", "event DeletePod"]);
  });

  it("gets it back although a standby stopped on a full volume", () => {
    const [full, other] = unready;
    if (!full || !other) throw new Error("the fixture has no pod");
    const state = { state: { terminated: { exitCode: 4 } } };
    const containerStatuses = [{ name: "postgres", image: "i", imageID: "", ready: false, restartCount: 1, ...state }];
    const stopped = { ...full, status: { ...full.status, containerStatuses } };
    const result = plan(cluster, withPods(observed, [stopped, other]));
    expect(result.status.phase).toBe("Not enough disk space");
    expect(stepsOf(result.actions)).toEqual(["createPod c-1"]);
  });

  it("gets it back although no ready standby answers", () => {
    const cut = without(observed, "c-1");
    const result = plan(cluster, { ...cut, instances: cut.pods.map((pod) => silent(pod)) });
    expect(result.status.targetPrimary).toBe("c-1");
    expect(stepsOf(result.actions)).toEqual(["createPod c-1"]);
  });

  it("gets it back although its only standby is fenced", () => {
    const annotations = { "cnpg.io/fencedInstances": '["c-2"]' };
    const fenced = { ...cluster, metadata: { ...cluster.metadata, annotations } };
    const [pod] = unready;
    if (!pod) throw new Error("the fixture has no pod");
    const status = {
      ...(answered(pod) as Extract<PolledInstance, { kind: "answered" }>).status,
      mightBeUnavailable: true,
    };
    const given = { ...withPods(observed, [pod]), instances: [answered(pod, status)] };
    expect(stepsOf(plan(fenced, given).actions)).toContain("createPod c-1");
  });
});
