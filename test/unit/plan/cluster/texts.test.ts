import { describe, expect, it } from "vitest";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import type { ClusterPlan } from "../../../../src/plan/cluster/plan-cluster.ts";
import {
  aCluster,
  aHealthyCluster,
  aJob,
  answered,
  aPod,
  aSettledObservation,
  aStatus,
  healthyStatus,
  now,
  plan,
  primaryStatus,
  silent,
  volumesOf,
  withPods,
} from "./fixtures.ts";

// Tools and people look for these texts: they are compared to the last character, each in the situation that brings it up.

type Spec = Partial<Cluster["spec"]>;

const healthy = (spec: Spec = {}, annotations: Record<string, string> = {}) => {
  const { cluster, observed } = aHealthyCluster(spec);
  return { cluster: { ...cluster, metadata: { ...cluster.metadata, annotations } }, observed };
};
const empty = (status: Cluster["status"] = {}, spec: Spec = {}): ClusterPlan => {
  const cluster = aCluster(spec, status);
  return plan(cluster, aSettledObservation(cluster));
};
const restart = (spec: Spec = {}): ClusterPlan => {
  const { cluster, observed } = healthy(spec, { "kubectl.kubernetes.io/restartedAt": "t" });
  const pods = observed.pods.map((pod, index) =>
    index === 0 || spec.instances === 1
      ? pod
      : {
          ...pod,
          metadata: {
            ...pod.metadata,
            annotations: { ...pod.metadata.annotations, "kubectl.kubernetes.io/restartedAt": "t" },
          },
        },
  );
  return plan(cluster, withPods(observed, pods));
};
const pendingRestart = (spec: Spec = {}): ClusterPlan => {
  const { cluster, observed } = healthy(spec);
  const [first, ...others] = observed.instances;
  if (!first) throw new Error("the fixture has no instance");
  return plan(cluster, {
    ...observed,
    instances: [answered(first.pod, primaryStatus({ pendingRestart: true })), ...others],
  });
};
const lost = (spec: Spec = {}, receiving = false): ClusterPlan => {
  const { cluster, observed } = healthy(spec);
  const without = withPods(observed, observed.pods.slice(1));
  const instances = without.pods.map((pod) => answered(pod, aStatus({ isWalReceiverActive: receiving })));
  return plan(cluster, { ...without, instances });
};
const failedJobs = (): ClusterPlan => {
  const { cluster, observed } = healthy();
  const pods = observed.pods.slice(0, 1);
  const volumes = [1, 2, 3].flatMap((it) => volumesOf(cluster, it, it === 1 ? "ready" : "initializing"));
  const jobs = [aJob(cluster, 2, "join", "failed"), aJob(cluster, 3, "join", "failed")];
  return plan(cluster, { ...withPods(observed, pods), volumes, jobs });
};
const running = (): ClusterPlan => {
  const { cluster, observed } = healthy({ instances: 2 });
  const volumes = [1, 2].flatMap((it) => volumesOf(cluster, it, it === 1 ? "ready" : "initializing"));
  return plan(cluster, {
    ...withPods(observed, observed.pods.slice(0, 1)),
    volumes,
    jobs: [aJob(cluster, 2, "join", "running")],
  });
};
const crashing = (): ClusterPlan => {
  const { cluster, observed } = healthy({ instances: 1 });
  const pod = aPod(cluster, 1, "unready");
  const waiting = { state: { waiting: { reason: "CrashLoopBackOff" } }, lastState: { terminated: { exitCode: 1 } } };
  const containerStatuses = [{ name: "postgres", image: "i", imageID: "", ready: false, restartCount: 3, ...waiting }];
  const broken = { ...pod, status: { ...pod.status, containerStatuses } };
  return plan(cluster, { ...withPods(observed, [broken]), instances: [silent(broken)] });
};
const delayed = (): ClusterPlan => {
  const { cluster, observed } = healthy({}, { "kubectl.kubernetes.io/restartedAt": "t" });
  const operator = { ...observed.operator, clustersRolloutDelayMs: 30_000 };
  return plan(cluster, {
    ...observed,
    operator,
    rolloutSlot: { cluster: "x/y", instance: "y-1", podUid: "", atMs: now.getTime() },
  });
};
const silentAll = (): ClusterPlan => {
  const { cluster, observed } = healthy();
  return plan(cluster, { ...observed, instances: observed.pods.map((pod) => silent(pod)) });
};

const annotated = "cluster has been explicitly restarted via annotation";
const pending = "Postgres needs a restart to apply some configuration changes";

describe("phases and reasons", () => {
  it.each<[string, string | undefined, () => ClusterPlan]>([
    ["Setting up primary", "Creating primary instance c-1", () => empty()],
    ["Creating a new replica", "Creating replica c-2-join", running],
    ["Cluster in healthy state", undefined, () => plan(healthy().cluster, healthy().observed)],
    ["Failing over", "Initiating a failover from c-1", () => lost({}, true)],
    ["Failing over", "Failing over from c-1 to c-2", () => lost()],
    ["Failing over", "Failing over to c-2", () => lost({ replica: { enabled: true, source: "s" } })],
    [
      "Upgrading cluster",
      `The primary instance needs to be restarted: c-1, reason: ${annotated}`,
      () => restart({ instances: 1 }),
    ],
    ["Upgrading cluster", annotated, () => restart({ primaryUpdateMethod: "switchover" })],
    ["Primary instance is being restarted without a switchover", annotated, () => restart()],
    ["Primary instance is being restarted in-place", pending, () => pendingRestart()],
    [
      "Waiting for user action",
      "User must issue a supervised switchover",
      () => restart({ primaryUpdateStrategy: "supervised" }),
    ],
    [
      "Cluster upgrade delayed",
      "The cluster need to be update, but the operator is configured to delay the operation",
      delayed,
    ],
    [
      "Upgrading cluster",
      `Restarting instance c-3, because: ${annotated}`,
      () => {
        const { cluster, observed } = healthy({}, { "kubectl.kubernetes.io/restartedAt": "t" });
        return plan(cluster, observed);
      },
    ],
    [
      "Cluster is unrecoverable and needs manual intervention",
      "One or more instances were previously created, but no PersistentVolumeClaims (PVCs) exist. The cluster is in an unrecoverable state. To resolve this, restore the cluster from a recent backup.",
      () => empty({ ...healthyStatus(), latestGeneratedNode: 3 }),
    ],
    [
      "Cluster is unrecoverable and needs manual intervention",
      "No pods are active, the cluster needs manual intervention ",
      crashing,
    ],
    [
      "Cluster is unrecoverable and needs manual intervention",
      "Instance creation failed for the following jobs: c-2-join, c-3-join. Check the job logs to investigate the cause of the failure.",
      failedJobs,
    ],
    [
      "Cluster cannot proceed to reconciliation due to an unknown plugin being required",
      "Unknown plugin: 'p'. This may be caused by the plugin not being loaded correctly by the operator. Check the operator and plugin logs for errors",
      () => empty({}, { plugins: [{ name: "p" }] }),
    ],
    [
      "Cluster has incomplete or invalid image catalog",
      "catalog ImageCatalog/x not found",
      () => {
        const cluster = aCluster({
          imageCatalogRef: { apiGroup: "postgresql.cnpg.io", kind: "ImageCatalog", name: "x", major: 17 },
        });
        return plan(cluster, aSettledObservation(cluster));
      },
    ],
    [
      "Instance Status Extraction Error: HTTP communication issue",
      "Communication issue detected: The operator was unable to receive the status from all the ready instances. This may be due to network restrictions such as NetworkPolicy and/or any other network plugin setting. Please verify your network configuration.",
      silentAll,
    ],
    [
      "Not enough disk space",
      "Insufficient disk space detected in one or more pods is preventing PostgreSQL from running.Please verify your storage settings. Further information inside .status.instancesReportedState",
      () => {
        const { cluster, observed } = healthy({ instances: 1 });
        const pod = aPod(cluster, 1, "unready");
        const full = { state: { terminated: { exitCode: 4 } } };
        const containerStatuses = [
          { name: "postgres", image: "i", imageID: "", ready: false, restartCount: 0, ...full },
        ];
        const stopped = { ...pod, status: { ...pod.status, containerStatuses } };
        return plan(cluster, { ...withPods(observed, [stopped]), instances: [silent(stopped)] });
      },
    ],
  ])("%s: %s", (phase, reason, make) => {
    const { status } = make();
    expect([status.phase, status.phaseReason]).toEqual([phase, reason]);
    const ready = status.conditions?.find((it) => it.type === "Ready");
    expect([ready?.status, ready?.reason, ready?.message]).toEqual(
      phase === "Cluster in healthy state"
        ? ["True", "ClusterIsReady", "Cluster is Ready"]
        : ["False", "ClusterIsNotReady", "Cluster Is Not Ready"],
    );
  });
});

describe("conditions", () => {
  const of = (result: ClusterPlan, type: string) => {
    const found = result.status.conditions?.find((it) => it.type === type);
    return [found?.status, found?.reason, found?.message];
  };
  const two = (first: string, second: string): ClusterPlan => {
    const { cluster, observed } = healthy({ instances: 2 });
    const statuses = [primaryStatus({ systemID: first }), aStatus({ systemID: second })];
    return plan(cluster, { ...observed, instances: observed.pods.map((pod, index) => answered(pod, statuses[index])) });
  };
  it.each<[string, ClusterPlan, string[]]>([
    ["Initialized", empty(), ["False", "BootstrapPending", "Cluster has not been bootstrapped yet"]],
    ["Initialized", lost(), ["True", "BootstrapCompleted", "Cluster has been bootstrapped"]],
    [
      "ConsistentSystemID",
      empty(),
      ["False", "NotFound", "No instances are present in the cluster to report a system ID."],
    ],
    [
      "ConsistentSystemID",
      silentAll(),
      ["False", "NotFound", "Instances are present, but none have reported a system ID."],
    ],
    [
      "ConsistentSystemID",
      two("a", "a"),
      ["True", "Unique", "A single, unique system ID was found across reporting instances."],
    ],
    [
      "ConsistentSystemID",
      two("b", "a"),
      ["False", "Mismatch", 'Multiple differing system IDs reported by instances: ["a" "b"]'],
    ],
  ])("%s", (type, result, expected) => {
    expect(of(result, type)).toEqual(expected);
  });

  it("come in the order in which the original writes them", () => {
    const first = empty();
    const { cluster, observed } = healthy();
    const later = plan(
      { ...cluster, status: { ...healthyStatus(), conditions: first.status.conditions ?? [] } },
      observed,
    );
    expect(later.status.conditions?.map((it) => it.type)).toEqual(["Initialized", "ConsistentSystemID", "Ready"]);
  });
});

describe("events", () => {
  const told = ({ actions }: ClusterPlan) =>
    actions.flatMap((it) => (it.kind === "event" ? [`${it.type} ${it.event} ${it.message}`] : []));
  const ended = (): ClusterPlan => {
    const { cluster, observed } = healthy();
    return plan(cluster, withPods(observed, [...observed.pods.slice(0, 2), aPod(cluster, 3, "failed")]));
  };
  it.each<[string, () => ClusterPlan]>([
    ["Normal CreatingInstance Primary instance (initdb)", () => empty()],
    ["Normal FailingOver Current primary isn't healthy, initiating a failover from c-1", () => lost()],
    ["Normal FailoverTarget Failing over from c-1 to c-2", () => lost()],
    [
      "Normal FailingOver Current target primary isn't healthy, failing over from c-1 to c-2",
      () => lost({ replica: { enabled: true, source: "s" } }),
    ],
    [
      "Normal Switchover Initiating switchover to c-2 to upgrade c-1",
      () => restart({ primaryUpdateMethod: "switchover" }),
    ],
    ["Normal UpgradingInstance Upgrading instance c-1", () => restart()],
    ["Normal RolloutDelayed Rollout of pod c-3 have been delayed for 30s", delayed],
    ["Normal DeletePod Deleted 'Failed' pod: 'c-3'", ended],
    [
      "Normal ScaleDown Scaling down - removing instance: c-3",
      () => {
        const { cluster, observed } = healthy();
        return plan({ ...cluster, spec: { ...cluster.spec, instances: 2 } }, observed);
      },
    ],
    [
      "Warning NoScaleDown Can't scale down lower than maxSyncReplicas, going back to 3",
      () => {
        const { cluster, observed } = healthy({ maxSyncReplicas: 2 });
        return plan({ ...cluster, spec: { ...cluster.spec, instances: 2 } }, observed);
      },
    ],
    [
      "Warning PrimaryStatusCheckFailed Primary pod c-1 is Ready but the operator's /pg/status check failed; failover deferred until Kubernetes marks the primary as not Ready. See operator logs for the underlying error.",
      () => {
        const { cluster, observed } = healthy();
        const [first, ...others] = observed.instances;
        if (!first) throw new Error("the fixture has no instance");
        return plan(cluster, { ...observed, instances: [silent(first.pod), ...others] });
      },
    ],
  ])("%s", (expected, make) => {
    expect(told(make())).toContain(expected);
  });
});
