import { describe, expect, it } from "vitest";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import type { Job } from "../../../../src/api/generated/kubernetes.ts";
import { phases } from "../../../../src/api/phases.ts";
import { planBeforeStatusCalls } from "../../../../src/plan/cluster/plan-cluster.ts";
import {
  aCluster,
  aHealthyCluster,
  aJob,
  anObservation,
  answered,
  aPod,
  aSettledObservation,
  aStatus,
  healthyStatus,
  now,
  plan,
  primaryStatus,
  silent,
  stepsOf,
  volumesOf,
  withImage,
  withPods,
} from "./fixtures.ts";

/** The Job as a plugin changes it that puts a container of its own before the one that works. */
function withSidecarFirst(job: Job): Job {
  const changed = structuredClone(job);
  changed.spec?.template.spec?.containers.unshift({ name: "first", image: "example.org/sidecar:1" });
  return changed;
}

describe("a new cluster", () => {
  it("gets what surrounds it, then its target primary, volume and Job, in this order", () => {
    const result = plan(aCluster(), anObservation());
    const steps = stepsOf(result.actions);
    expect(steps.slice(0, 4)).toEqual([
      "issueCertificate",
      "issueCertificate",
      "issueCertificate",
      "createCredentials",
    ]);
    expect(steps.slice(-3)).toEqual([
      "event CreatingInstance",
      "createPersistentVolumeClaim c-1",
      "createJob c-1-initdb",
    ]);
    const target = result.actions.findIndex((it) => it.kind === "patchStatus" && it.patch["targetPrimary"] === "c-1");
    const job = result.actions.findIndex((it) => it.kind === "create" && it.object.kind === "Job");
    expect(target).toBeGreaterThan(-1);
    expect(target).toBeLessThan(job);
    expect(result.status).toMatchObject({
      phase: phases.settingUpPrimary,
      phaseReason: "Creating primary instance c-1",
      targetPrimary: "c-1",
      targetPrimaryTimestamp: "2026-01-02T03:04:05.678000Z",
      image: "example.org/postgresql:17.2",
    });
  });

  it("waits for its first Job and tells what keeps it from starting", () => {
    const cluster = aCluster({}, { targetPrimary: "c-1" });
    const pulling = {
      ...aPod(cluster, 1, "pending"),
      status: {
        phase: "Pending",
        containerStatuses: [
          {
            name: "initdb",
            image: "example.org/none:17",
            imageID: "",
            ready: false,
            restartCount: 0,
            state: { waiting: { reason: "ImagePullBackOff", message: "not found" } },
          },
        ],
      },
    };
    const observed = aSettledObservation(cluster, {
      volumes: volumesOf(cluster, 1, "initializing"),
      jobs: [aJob(cluster, 1, "initdb", "running")],
      jobPods: [pulling],
    });
    const result = plan(cluster, observed);
    expect(result.status.phase).toBe(phases.settingUpPrimary);
    expect(result.status.phaseReason).toContain("cannot start image example.org/none:17, ImagePullBackOff: not found");
    expect(stepsOf(result.actions)).toEqual(["event InstanceCannotStart"]);
    const again = plan({ ...cluster, status: result.status }, observed);
    expect(stepsOf(again.actions)).toEqual([]);
  });

  it.each<[string, string, string | undefined, string[], ((job: Job) => Job)?]>([
    [
      "cannot start and is no longer the cluster's",
      "example.org/postgresql:17.3",
      "ErrImagePull",
      ["deleteJob c-1-initdb"],
    ],
    ["cannot start and is the cluster's", "example.org/postgresql:17.2", "ErrImagePull", []],
    ["is outdated and works", "example.org/postgresql:17.3", undefined, []],
    ["cannot start behind a plugin's container", "example.org/postgresql:17.2", "ErrImagePull", [], withSidecarFirst],
    [
      "is outdated behind a plugin's container",
      "example.org/postgresql:17.3",
      "ErrImagePull",
      ["deleteJob c-1-initdb"],
      withSidecarFirst,
    ],
  ])("with a first Job whose image %s", (_, wanted, problem, expected, change = (it) => it) => {
    const cluster = withImage(aCluster({}, { targetPrimary: "c-1" }));
    const job = change(aJob(cluster, 1, "initdb", "running"));
    const state = problem ? { waiting: { reason: problem } } : { running: {} };
    const containerStatuses = [{ name: "initdb", image: "i", imageID: "", ready: false, restartCount: 0, state }];
    const pod = {
      ...aPod(cluster, 1),
      metadata: { name: "c-1-initdb-x", labels: job.metadata.labels ?? {} },
      status: { phase: problem ? "Pending" : "Running", containerStatuses },
    };
    const volumes = volumesOf(cluster, 1, "initializing");
    const observed = aSettledObservation(cluster, { volumes, jobs: [job], jobPods: [pod] });
    const asked = { ...cluster, spec: { ...cluster.spec, imageName: wanted } };
    const steps = stepsOf(plan(asked, observed).actions).filter((it) => !it.startsWith("event"));
    expect(steps).toEqual(expected);
    if (expected.length === 0) return;
    expect(stepsOf(plan(asked, { ...observed, jobs: [], jobPods: [] }).actions)).toEqual(["createJob c-1-initdb"]);
  });

  it("makes the Job again when the operator ended after the volume", () => {
    const cluster = aCluster({}, { targetPrimary: "c-1" });
    const result = plan(cluster, aSettledObservation(cluster, { volumes: volumesOf(cluster, 1, "initializing") }));
    expect(stepsOf(result.actions)).toEqual(["createJob c-1-initdb"]);
  });

  it("gets its pod in the pass that sees the Job done", () => {
    const cluster = aCluster({}, { targetPrimary: "c-1" });
    const observed = aSettledObservation(cluster, {
      volumes: volumesOf(cluster, 1, "initializing"),
      jobs: [aJob(cluster, 1, "initdb", "complete")],
    });
    expect(stepsOf(plan(cluster, observed).actions)).toEqual(["patchPersistentVolumeClaim c-1", "createPod c-1"]);
  });

  it("reports a Job that gave up", () => {
    const cluster = aCluster({}, { targetPrimary: "c-1" });
    const observed = aSettledObservation(cluster, {
      volumes: volumesOf(cluster, 1, "initializing"),
      jobs: [aJob(cluster, 1, "initdb", "failed")],
    });
    const result = plan(cluster, observed);
    expect(result.status.phase).toBe(phases.unrecoverable);
    expect(result.status.phaseReason).toContain("c-1-initdb");
    expect(result.requeueAfterMs).toBe(5_000);
  });
});

describe("replicas", () => {
  it("are cloned side by side once the primary is ready", () => {
    const cluster = aCluster({}, healthyStatus(1));
    const pod = aPod(cluster, 1);
    const observed = aSettledObservation(cluster, {
      pods: [pod],
      volumes: volumesOf(cluster, 1),
      instances: [answered(pod, primaryStatus())],
    });
    const result = plan(cluster, observed);
    expect(stepsOf(result.actions)).toEqual([
      "event CreatingInstance",
      "event CreatingInstance",
      "createPersistentVolumeClaim c-2",
      "createJob c-2-join",
      "createPersistentVolumeClaim c-3",
      "createJob c-3-join",
    ]);
    expect(result.status.phase).toBe(phases.creatingReplica);
  });

  it("are not cloned from a primary that does not answer", () => {
    const cluster = aCluster({}, healthyStatus(1));
    const pod = aPod(cluster, 1, "unready");
    const observed = aSettledObservation(cluster, {
      pods: [pod],
      volumes: volumesOf(cluster, 1),
      instances: [silent(pod)],
    });
    expect(stepsOf(plan(cluster, observed).actions)).toEqual([]);
  });

  it.each(["silent", "answering"])("start while a primary that has just been made is %s and not ready yet", (state) => {
    const cluster = aCluster({}, { ...healthyStatus(1), phase: "Setting up primary" });
    const pod = aPod(cluster, 1, "unready");
    const observed = aSettledObservation(cluster, {
      pods: [pod],
      volumes: volumesOf(cluster, 1),
      jobs: [aJob(cluster, 1, "initdb", "complete")],
      instances: [state === "silent" ? silent(pod) : answered(pod, primaryStatus())],
    });
    expect(stepsOf(plan(cluster, observed).actions)).toContain("createJob c-3-join");
  });

  it("get their pods while another is still being cloned", () => {
    const cluster = aCluster({}, healthyStatus(3));
    const pod = aPod(cluster, 1);
    const observed = aSettledObservation(cluster, {
      pods: [pod],
      volumes: [1, 2, 3].flatMap((serial) => volumesOf(cluster, serial, serial === 1 ? "ready" : "initializing")),
      jobs: [aJob(cluster, 2, "join", "complete"), aJob(cluster, 3, "join", "running")],
      instances: [answered(pod, primaryStatus())],
    });
    expect(stepsOf(plan(cluster, observed).actions)).toEqual(["patchPersistentVolumeClaim c-2", "createPod c-2"]);
  });

  it("take the lowest free serial", () => {
    const { cluster, observed } = aHealthyCluster();
    const pods = observed.pods.filter((it) => it.metadata.name !== "c-2");
    const volumes = observed.volumes.filter((it) => it.metadata.name !== "c-2");
    const result = plan(cluster, { ...withPods(observed, pods), volumes });
    expect(stepsOf(result.actions)).toContain("createJob c-2-join");
  });

  it("wait for a volume of their name to be gone", () => {
    const { cluster, observed } = aHealthyCluster();
    const pods = observed.pods.filter((it) => it.metadata.name !== "c-2");
    const volumes = observed.volumes.map((it) =>
      it.metadata.name === "c-2"
        ? { ...it, metadata: { ...it.metadata, deletionTimestamp: "2026-01-02T00:00:00Z" } }
        : it,
    );
    const result = plan(cluster, { ...withPods(observed, pods), volumes });
    expect(result.status.phaseReason).toBe('Waiting for PVC "c-2" to be removed before recreating instance "c-2"');
    // The instances' role names those that are left.
    expect(stepsOf(result.actions)).toEqual(["event UpdatingRole", "updateRole c"]);
  });

  it("do not take the success of a Job that ended before their volume was made", () => {
    const { cluster, observed } = aHealthyCluster();
    const pods = observed.pods.filter((it) => it.metadata.name !== "c-2");
    const [fresh] = volumesOf(cluster, 2, "initializing");
    if (!fresh) throw new Error("the fixture has no volume");
    const volumes = observed.volumes.map((it) =>
      it.metadata.name === "c-2"
        ? { ...fresh, metadata: { ...fresh.metadata, creationTimestamp: "2026-01-02T03:00:00Z" } }
        : it,
    );
    const jobs = [aJob(cluster, 2, "join", "complete")];
    const result = plan(cluster, { ...withPods(observed, pods), volumes, jobs });
    expect(stepsOf(result.actions)).toEqual(["deleteJob c-2-join"]);
  });
});

describe("a healthy cluster", () => {
  it("is left alone", () => {
    const { cluster, observed } = aHealthyCluster();
    const first = plan(cluster, observed);
    expect(stepsOf(first.actions)).toEqual([]);
    expect(first.status.phase).toBe(phases.healthy);
    const settled: Cluster = { ...cluster, status: first.status };
    expect(plan(settled, observed).actions).toEqual([]);
  });

  it("writes the status that follows from the objects", () => {
    const { cluster, observed } = aHealthyCluster();
    expect(plan(cluster, observed).status).toMatchObject({
      instances: 3,
      readyInstances: 3,
      instanceNames: ["c-1", "c-2", "c-3"],
      instancesStatus: { healthy: ["c-1", "c-2", "c-3"] },
      instancesReportedState: { "c-1": { isPrimary: true, timeLineID: 1, ip: "10.0.0.1" } },
      healthyPVC: ["c-1", "c-2", "c-3"],
      pvcCount: 3,
      jobCount: 0,
      systemID: "7000000000000000001",
      timelineID: 1,
      readService: "c-r",
      writeService: "c-rw",
      selector: "cnpg.io/cluster=c,cnpg.io/podRole=instance",
      operatorCertificateFingerprint: "f1",
      onlineUpdateEnabled: false,
      secretsResourceVersion: { applicationSecretVersion: "rv-c-app", serverSecretVersion: "rv-c-server" },
    });
  });

  it("gets a lost pod back on its volume", () => {
    const { cluster, observed } = aHealthyCluster();
    const pods = observed.pods.filter((it) => it.metadata.name !== "c-3");
    expect(stepsOf(plan(cluster, withPods(observed, pods)).actions)).toEqual(["createPod c-3"]);
  });

  it("loses what is left of a replica whose data volume is gone", () => {
    const spec = { walStorage: { size: "1Gi" } };
    const { cluster, observed } = aHealthyCluster(spec);
    const pods = observed.pods.filter((it) => it.metadata.name !== "c-3");
    const volumes = observed.volumes.filter((it) => it.metadata.name !== "c-3");
    expect(stepsOf(plan(cluster, { ...withPods(observed, pods), volumes }).actions)).toEqual([
      "deletePersistentVolumeClaim c-3-wal",
    ]);
  });

  it("is unrecoverable without volumes, and stays initialized", () => {
    const status = { ...healthyStatus(), conditions: [initialized] };
    const cluster = aCluster({}, status);
    const result = plan(cluster, aSettledObservation(cluster));
    expect(result.status.phase).toBe(phases.unrecoverable);
    expect(result.status.phaseReason).toContain("no PersistentVolumeClaims");
    expect(result.requeueAfterMs).toBeUndefined();
  });

  it("is looked at again after a minute", () => {
    const { cluster, observed } = aHealthyCluster();
    expect(plan(cluster, observed).requeueAfterMs).toBe(60_000);
  });

  it("does nothing while its reconciliation is disabled", () => {
    const { cluster, observed } = aHealthyCluster();
    const paused = {
      ...cluster,
      metadata: { ...cluster.metadata, annotations: { "cnpg.io/reconciliationLoop": "disabled" } },
    };
    expect(plan(paused, withPods(observed, [])).actions).toEqual([]);
  });

  it("waits for pods that do not run yet, in the words that tools look for", () => {
    const { cluster, observed } = aHealthyCluster();
    const pods = [...observed.pods.slice(0, 2), aPod(cluster, 3, "pending")];
    const result = plan(cluster, withPods(observed, pods));
    expect(result.status.phase).toBe(phases.waitingForInstances);
    expect(result.status.phaseReason).toBe("Some instances are not yet active. Please wait.");
  });

  it("starts cold with the primary alone", () => {
    const { cluster, observed } = aHealthyCluster();
    expect(stepsOf(plan(cluster, withPods(observed, [])).actions)).toEqual(["createPod c-1"]);
  });

  it.each<[Parameters<typeof aPod>[2], string[]]>([
    // A standby that is up first would look like the survivor of a lost primary.
    ["pending", []],
    ["unready", ["createPod c-2", "createPod c-3"]],
    ["ready", ["createPod c-2", "createPod c-3"]],
    ["terminating", ["createPod c-2", "createPod c-3"]],
  ])("starts cold: with the primary's pod %s the next steps are %j", (state, expected) => {
    const { cluster, observed } = aHealthyCluster();
    const pod = aPod(cluster, 1, state);
    const instances = state === "ready" ? [answered(pod, primaryStatus())] : state === "unready" ? [silent(pod)] : [];
    const result = plan(cluster, { ...withPods(observed, [pod]), instances });
    expect(stepsOf(result.actions)).toEqual(expected);
    if (state === "pending") expect(result.status.phase).toBe(phases.waitingForInstances);
  });
});

const initialized = {
  type: "Initialized",
  status: "True" as const,
  reason: "BootstrapCompleted",
  message: "Cluster has been bootstrapped",
  lastTransitionTime: "2026-01-01T00:00:00Z",
};

describe("before the status calls", () => {
  it("a new primary gets its label at once", () => {
    const { observed } = aHealthyCluster();
    const cluster = aCluster({}, { ...healthyStatus(), currentPrimary: "c-2", targetPrimary: "c-2" });
    const result = planBeforeStatusCalls(cluster, { ...observed, instances: [] }, now);
    expect(result.complete).toBe(false);
    expect(stepsOf(result.actions)[0]).toBe("patchPod c-2");
    expect(stepsOf(result.actions)).toContain("patchPod c-1");
  });

  it("a promotion is waited for with the old primary out of the Service", () => {
    const { observed } = aHealthyCluster();
    const cluster = aCluster({}, { ...healthyStatus(), targetPrimary: "c-2" });
    const result = planBeforeStatusCalls(cluster, { ...observed, instances: [] }, now);
    expect(result.complete).toBe(true);
    expect(stepsOf(result.actions)).toEqual(["patchPod c-1"]);
    expect(result.actions[0]).toMatchObject({
      patch: { metadata: { labels: { role: "unhealthy" } } },
      bestEffort: true,
    });
    expect(result.requeueAfterMs).toBe(1_000);
  });
});

describe("what stands in the way", () => {
  it("is told for every object at once, and does not keep the rest from being made", () => {
    const cluster = aCluster();
    const foreign = {
      apiVersion: "v1" as const,
      kind: "Service" as const,
      metadata: { name: "c-rw", namespace: "ns" },
    };
    const result = plan(cluster, anObservation({ services: new Map([["c-rw", foreign]]) }));
    expect(result.status.phase).toBe(phases.cannotCreateObjects);
    expect(result.status.phaseReason).toBe("refusing to reconcile service: c-rw, not owned by the cluster");
    const steps = stepsOf(result.actions);
    expect(steps).toContain("createService c-ro");
    expect(steps).toContain("createLease c");
    expect(steps.some((it) => it.startsWith("createJob"))).toBe(false);
  });

  it("does not stop a failover", () => {
    const { cluster, observed } = aHealthyCluster();
    const pods = observed.pods.slice(1);
    const broken = { ...withPods(observed, pods), services: new Map() };
    const idle = broken.instances.map((it) =>
      it.kind === "answered" ? { ...it, status: aStatus({ isWalReceiverActive: false }) } : it,
    );
    const result = plan({ ...cluster, spec: { ...cluster.spec, imageName: "none" } }, { ...broken, instances: idle });
    expect(result.status.targetPrimary).toBe("c-2");
  });

  it("is a plugin that nobody provides", () => {
    const { cluster, observed } = aHealthyCluster({ plugins: [{ name: "p.example.org" }] });
    const result = plan(withImage(cluster), observed);
    expect(result.status.phase).toBe(phases.unknownPlugin);
    expect(result.requeueAfterMs).toBe(10_000);
  });
});
