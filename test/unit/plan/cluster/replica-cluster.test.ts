import { describe, expect, it } from "vitest";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import { annotations } from "../../../../src/api/labels.ts";
import { phases } from "../../../../src/api/phases.ts";
import { replicaConditions, replicaConditionTexts } from "../../../../src/api/replica-conditions.ts";
import type { ClusterAction } from "../../../../src/plan/cluster/actions.ts";
import type { ObservedCluster } from "../../../../src/plan/cluster/observed.ts";
import { planBeforeStatusCalls } from "../../../../src/plan/cluster/plan-cluster.ts";
import { wantsControlData } from "../../../../src/plan/cluster/replica-cluster.ts";
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

const replica = { enabled: true, source: "origin" };
const externalClusters = [{ name: "origin", connectionParameters: { host: "origin" } }];

const controlText = (state = "shut down") =>
  [
    "Database system identifier:           7000000000000000001",
    `Database cluster state:               ${state}`,
    "Latest checkpoint's REDO location:    0/5000028",
    "Latest checkpoint's REDO WAL file:    000000010000000000000005",
    "Latest checkpoint's TimeLineID:       1",
    "Time of latest checkpoint:            Fri 02 Jan 2026 03:04:05 AM UTC",
  ].join("\n");

const token = Buffer.from(
  JSON.stringify({
    latestCheckpointTimelineID: "1",
    redoWalFile: "000000010000000000000005",
    databaseSystemIdentifier: "7000000000000000001",
    latestCheckpointREDOLocation: "0/5000028",
    timeOfLatestCheckpoint: "Fri 02 Jan 2026 03:04:05 AM UTC",
    operatorVersion: "1.30.0",
  }),
).toString("base64");

const condition = (type: string, status: "True" | "False", reason = "ReplicaClusterAfterCreation") => ({
  type,
  status,
  reason,
  message: "m",
  lastTransitionTime: "2026-01-01T00:00:00Z",
});

/** A cluster in which the transition is as far as told. */
function inTransition(
  transition: "True" | "False",
  options: { fenced?: boolean; status?: Cluster["status"]; spec?: Partial<Cluster["spec"]> } = {},
): { cluster: Cluster; observed: ObservedCluster } {
  const { cluster, observed } = aHealthyCluster(options.spec ?? { replica, externalClusters });
  const fence = (options.fenced ?? true) ? { [annotations.fencedInstances]: '["*"]' } : {};
  const conditions = [
    condition(replicaConditions.transition, transition),
    condition(replicaConditions.fencing, "True"),
    condition(replicaConditions.switch, "False", "ReplicaEnabledSetTrue"),
  ];
  const status = {
    ...healthyStatus(),
    conditions,
    switchReplicaClusterStatus: { inProgress: true },
    ...options.status,
  };
  const down = aStatus({ mightBeUnavailable: true, isWalReceiverActive: false });
  const pods = [1, 2, 3].map((serial) => aPod(cluster, serial, "unready"));
  return {
    cluster: { ...cluster, metadata: { ...cluster.metadata, annotations: fence }, status },
    observed: { ...withPods(observed, pods), instances: pods.map((pod) => answered(pod, down)) },
  };
}

const patches = (actions: readonly ClusterAction[]) =>
  actions.filter((it) => it.kind === "patchCluster" || it.kind === "archivePartialWal");
const read = { controlData: { kind: "read" as const, text: controlText() } };

describe("a primary cluster that is to follow another", () => {
  it("is fenced as a whole, and tells that the change has begun", () => {
    const { cluster, observed } = aHealthyCluster({ replica, externalClusters });
    const result = plan(cluster, observed);
    expect(stepsOf(result.actions)).toEqual(["patchCluster"]);
    expect(patches(result.actions)).toMatchObject([
      { patch: { metadata: { annotations: { "cnpg.io/fencedInstances": '["*"]' } } } },
    ]);
    expect(result.status.switchReplicaClusterStatus).toEqual({ inProgress: true });
    expect(result.status.conditions?.filter(({ type }) => type.startsWith("Replica"))).toMatchObject([
      { type: "ReplicaClusterDesignatedPrimaryTransition", status: "False", ...replicaConditionTexts.begun },
      { type: "ReplicaClusterFencing", status: "True", ...replicaConditionTexts.begun },
      { type: "ReplicaClusterSwitch", status: "False", ...replicaConditionTexts.switchBegun },
    ]);
    expect(result.requeueAfterMs).toBe(1_000);
  });

  it("is left alone when its primary is a standby already, or says nothing", () => {
    const { cluster, observed } = aHealthyCluster({ replica, externalClusters });
    for (const first of [answered(aPod(cluster, 1), aStatus()), silent(aPod(cluster, 1))]) {
      const result = plan(cluster, { ...observed, instances: [first, ...observed.instances.slice(1)] });
      expect(result.status.switchReplicaClusterStatus).toEqual({});
    }
  });

  it("is not begun for another instance that says it is primary", () => {
    const { cluster, observed } = aHealthyCluster({ replica, externalClusters });
    const [one, two, three] = observed.pods.map((pod, index) =>
      answered(pod, index === 1 ? primaryStatus() : aStatus()),
    );
    if (!one || !two || !three) throw new Error("three pods");
    expect(plan(cluster, { ...observed, instances: [one, two, three] }).status.switchReplicaClusterStatus).toEqual({});
  });

  it("is fenced again when the fence was lost before the primary became a standby", () => {
    const { cluster, observed } = inTransition("False", { fenced: false });
    expect(patches(plan(cluster, observed).actions)).toMatchObject([{ kind: "patchCluster" }]);
    const fenced = inTransition("False");
    expect(patches(plan(fenced.cluster, fenced.observed).actions)).toEqual([]);
    expect(plan(fenced.cluster, fenced.observed).status.targetPrimary).toBe("c-1");
  });

  it("has its partial segment archived, its token written and its fence lifted, in this order", () => {
    const { cluster, observed } = inTransition("True");
    const result = plan(cluster, { ...observed, ...read });
    const steps = result.actions.map((it) => {
      if (it.kind === "patchStatus") return Object.keys(it.patch).sort().join();
      return it.kind === "archivePartialWal" ? `${it.kind} ${it.instance} ${it.wal}` : it.kind;
    });
    expect(steps.slice(0, 3)).toEqual([
      "archivePartialWal c-1 000000010000000000000005",
      expect.stringContaining("demotionToken"),
      "patchCluster",
    ]);
    expect(result.status.demotionToken).toBe(token);
    expect(result.status.conditions?.filter(({ type }) => type.startsWith("Replica"))).toMatchObject([
      { type: "ReplicaClusterSwitch", status: "True", ...replicaConditionTexts.switchDone },
    ]);
    expect(result.status.switchReplicaClusterStatus).toEqual({});
    expect(patches(result.actions).at(-1)).toMatchObject({
      patch: { metadata: { annotations: { "cnpg.io/fencedInstances": null } } },
    });
  });

  it("does not archive again what an earlier pass has recorded", () => {
    const { cluster, observed } = inTransition("True", { status: { demotionToken: token } });
    expect(patches(plan(cluster, { ...observed, ...read }).actions).map(({ kind }) => kind)).toEqual(["patchCluster"]);
  });

  const unknown = { kind: "unknown" as const, reason: "answered 503" };
  it.each([
    ["its control data can't be read", unknown],
    ["it still runs", { kind: "read" as const, text: controlText("in production") }],
    ["it is shutting down", { kind: "read" as const, text: controlText("shutting down") }],
    ["its control file tells too little", { kind: "read" as const, text: "Database cluster state: shut down" }],
  ])("is looked at again in ten seconds while %s", (_, controlData) => {
    const { cluster, observed } = inTransition("True");
    const result = plan(cluster, { ...observed, controlData });
    expect(patches(result.actions)).toEqual([]);
    expect(result.requeueAfterMs).toBe(10_000);
    expect(result.status.demotionToken).toBeUndefined();
  });

  it("takes a standby that was stopped in order too", () => {
    const { cluster, observed } = inTransition("True");
    const controlData = { kind: "read" as const, text: controlText("shut down in recovery") };
    expect(plan(cluster, { ...observed, controlData }).status.demotionToken).toBe(token);
  });

  it("ends without a token, and says so, when somebody lifted the fence before it was made", () => {
    const { cluster, observed } = inTransition("True", { fenced: false });
    const result = plan(cluster, observed);
    expect(stepsOf(result.actions)).toEqual(["event DemotionTokenMissing"]);
    expect(result.status.switchReplicaClusterStatus).toEqual({});
    const crashed = inTransition("True", { fenced: false, status: { demotionToken: token } });
    expect(stepsOf(plan(crashed.cluster, crashed.observed).actions)).toEqual([]);
  });

  it("is given back its primary when it is not to follow any more", () => {
    const { cluster, observed } = inTransition("False", { spec: {} });
    const result = plan(cluster, observed);
    expect(patches(result.actions)).toMatchObject([
      { patch: { metadata: { annotations: { [annotations.fencedInstances]: null } } } },
    ]);
    expect(result.status.conditions?.filter(({ type }) => type.startsWith("Replica"))).toEqual([]);
  });
});

describe("the control data", () => {
  const { cluster } = inTransition("True");
  it.each<[string, Cluster, string | undefined]>([
    ["the primary became a standby", cluster, "c-1"],
    ["it has not yet", inTransition("False").cluster, undefined],
    ["nothing is fenced", inTransition("True", { fenced: false }).cluster, undefined],
    ["the cluster is a primary one", inTransition("True", { spec: {} }).cluster, undefined],
    ["nothing changes", aHealthyCluster({ replica, externalClusters }).cluster, undefined],
  ])("are asked for or not when %s", (_, given, expected) => {
    expect(wantsControlData(given)).toBe(expected);
  });
});

describe("a promotion with a token", () => {
  const withToken = (status: Cluster["status"] = {}) => {
    const spec = { replica: { ...replica, enabled: false, promotionToken: token }, externalClusters };
    const { cluster, observed } = aHealthyCluster(spec);
    return { cluster: { ...cluster, status: { ...healthyStatus(), ...status } }, observed };
  };

  it("holds everything else until the instance has recorded the token", () => {
    const { cluster, observed } = withToken();
    const early = planBeforeStatusCalls(cluster, observed, now);
    expect(early).toMatchObject({ complete: true, requeueAfterMs: 1_000 });
    expect(early.status).toMatchObject({
      phase: phases.promotingReplicaCluster,
      phaseReason: "Replica cluster promotion in progress",
    });
    const done = withToken({ lastPromotionToken: token });
    expect(planBeforeStatusCalls(done.cluster, done.observed, now).complete).toBe(false);
    expect(plan(done.cluster, done.observed).status.phase).toBe(phases.healthy);
  });

  it("keeps the phase that tells of a token that can't be met", () => {
    const reason = "Promotion token content is not correct for current instance";
    const { cluster, observed } = withToken({ phase: phases.unrecoverable, phaseReason: reason });
    expect(planBeforeStatusCalls(cluster, observed, now).status).toMatchObject({
      phase: phases.unrecoverable,
      phaseReason: reason,
    });
  });

  it("leaves no token behind where it does not belong", () => {
    const { cluster, observed } = aHealthyCluster({ replica: { ...replica, enabled: false }, externalClusters });
    const tokens = { demotionToken: token, lastPromotionToken: token };
    const result = plan({ ...cluster, status: { ...healthyStatus(), ...tokens } }, observed);
    expect(result.status).not.toHaveProperty("demotionToken");
    expect(result.status).not.toHaveProperty("lastPromotionToken");
  });
});
