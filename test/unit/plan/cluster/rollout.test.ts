import { describe, expect, it } from "vitest";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import type { Pod } from "../../../../src/api/generated/kubernetes.ts";
import { annotations as keys } from "../../../../src/api/labels.ts";
import type { PostgresStatus } from "../../../../src/api/pg-status.ts";
import { phases } from "../../../../src/api/phases.ts";
import type { ObservedCluster } from "../../../../src/plan/cluster/observed.ts";
import { rolloutDelayMs } from "../../../../src/plan/cluster/rollout-slot.ts";
import { aHealthyCluster, aPod, aStatus, now, plan, primaryStatus, stepsOf, withImage, withPods } from "./fixtures.ts";

type Statuses = Partial<Record<string, Partial<PostgresStatus>>>;

/** The healthy cluster with its spec changed afterwards and its instances answering as given. */
function rolled(spec: Partial<Cluster["spec"]>, statuses: Statuses = {}, metadata: Partial<Cluster["metadata"]> = {}) {
  const { cluster, observed } = aHealthyCluster();
  const instances = observed.instances.map((it) => {
    if (it.kind === "silent") return it;
    const base = it.name === "c-1" ? primaryStatus() : aStatus();
    return { ...it, status: { ...base, ...statuses[it.name] } };
  });
  const changed: Cluster = {
    ...withImage(cluster),
    metadata: { ...cluster.metadata, ...metadata },
    spec: { ...cluster.spec, ...spec },
  };
  return { cluster: changed, observed: { ...observed, instances } };
}

const resources = { resources: { requests: { memory: "1Gi" } } };
/** Every replica is as it should be: what is left to roll is the primary. */
function onlyPrimary(spec: Partial<Cluster["spec"]>, status: Partial<PostgresStatus> = { executableHash: "" }) {
  return rolled(spec, { "c-1": status });
}

function run({ cluster, observed }: { cluster: Cluster; observed: ObservedCluster }) {
  const result = plan(cluster, observed);
  return { steps: stepsOf(result.actions), phase: result.status.phase, reason: result.status.phaseReason, result };
}

describe("replicas", () => {
  it("go one at a time, the one that lags most first", () => {
    const given = rolled(resources, { "c-2": { receivedLsn: "0/4000000" } });
    const { steps, phase, reason } = run(given);
    expect(steps).toEqual(["event UpgradingInstance", "deletePod c-2"]);
    expect(phase).toBe(phases.upgrading);
    expect(reason).toMatch(/^Restarting instance c-2, because: original and target PodSpec differ in containers/);
  });

  it.each<[string, Parameters<typeof rolled>, string]>([
    [
      "another image",
      [{ imageName: "example.org/postgresql:17.3" }],
      "the instance is using a different image: example.org/postgresql:17.2 -> example.org/postgresql:17.3",
    ],
    [
      "a restart that was asked for",
      [{}, {}, { annotations: { "kubectl.kubernetes.io/restartedAt": "t" } }],
      "cluster has been explicitly restarted via annotation",
    ],
    [
      "settings that need a restart",
      [{}, { "c-3": { pendingRestart: true } }],
      "Postgres needs a restart to apply some configuration changes",
    ],
    [
      "no word of the running program",
      [{}, { "c-3": { executableHash: "" } }],
      "pod 'c-3' is not reporting the executable hash",
    ],
  ])("go for %s", (_, given, reason) => {
    const outcome = run(rolled(...given));
    expect(outcome.steps).toContain("deletePod c-3");
    expect(outcome.reason).toContain(reason);
  });

  it("stay where CloudNativePG's own instance manager runs and would not see the difference", () => {
    const given = { priorityClassName: "high" };
    expect(run(rolled(given)).steps).toEqual([]);
    expect(run(rolled(given, { "c-3": { cnpgTs: {} } })).steps).toEqual(["event UpgradingInstance", "deletePod c-3"]);
  });

  it("stay when drift checks are switched off", () => {
    const given = rolled(resources, {}, { annotations: { "cnpg.io/reconcilePodSpec": "disabled" } });
    expect(run(given).steps).toEqual([]);
  });

  it("stay when webhooks of others have added variables, containers and volumes to their pods", () => {
    const { cluster, observed } = rolled({});
    const env = ["TZ", "HTTPS_PROXY"].map((name) => ({ name, value: "x" }));
    const pods = observed.pods.map((pod): Pod => {
      const { containers = [], volumes = [], initContainers = [] } = pod.spec ?? {};
      const spec = {
        ...pod.spec,
        containers: [
          { name: "proxy", image: "mesh:1", env },
          ...containers.map((it) => ({ ...it, env: [...(it.env ?? []), ...env] })),
        ],
        initContainers: [...initContainers, { name: "mesh-init", image: "mesh:1" }],
        volumes: [...volumes, { name: "mesh", emptyDir: {} }],
      };
      return { ...pod, spec };
    });
    expect(run({ cluster, observed: withPods(observed, pods) }).steps).toEqual([]);
  });

  it("go once for a new affinity, and stay when it is back in their pods", () => {
    const nodeAffinity = {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: "disk", operator: "In", values: ["ssd"] }] }],
      },
    };
    const given = rolled({ affinity: { nodeAffinity } });
    const outcome = run(given);
    expect(outcome.steps).toContain("deletePod c-3");
    expect(outcome.reason).toContain("original and target PodSpec differ in affinity");
    const pods = [1, 2, 3].map((serial) => aPod(given.cluster, serial));
    expect(run({ ...given, observed: withPods(given.observed, pods) }).steps).toEqual([]);
  });

  it("stay while an instance does not answer", () => {
    const { cluster, observed } = rolled(resources);
    const [first, second, third] = observed.instances;
    if (!first || !second || !third) throw new Error("three instances are needed");
    const mute = { kind: "silent" as const, name: second.name, pod: second.pod, ready: true, reason: "time-out" };
    expect(run({ cluster, observed: { ...observed, instances: [first, mute, third] } }).steps).toEqual([]);
  });

  it("stay while instances of one program have loaded different configurations", () => {
    expect(run(rolled(resources, { "c-3": { loadedConfigurationHash: "h2" } })).steps).toEqual([]);
  });

  it("go when only different programs differ in their configuration's hash", () => {
    const given = rolled(resources, { "c-3": { loadedConfigurationHash: "h2", executableHash: "e2" } });
    expect(run(given).steps).toContain("deletePod c-3");
  });

  it("wait for their turn", () => {
    const { cluster, observed } = rolled(resources);
    const operator = { ...observed.operator, clustersRolloutDelayMs: 60_000 };
    const rolloutSlot = { cluster: "other/x", instance: "x-1", podUid: "", atMs: now.getTime() - 10_000 };
    const outcome = run({ cluster, observed: { ...observed, operator, rolloutSlot } });
    expect(outcome.steps).toEqual(["event RolloutDelayed"]);
    expect(outcome.phase).toBe(phases.upgradeDelayed);
    expect(outcome.result.requeueAfterMs).toBe(15_000);
  });
});

describe("the primary", () => {
  it("waits for a person when the strategy says so", () => {
    const outcome = run(onlyPrimary({ primaryUpdateStrategy: "supervised" }));
    expect(outcome.phase).toBe(phases.waitingForUser);
    expect(outcome.steps).toEqual([]);
  });

  it("restarts in place when the person asks for that", () => {
    const { cluster, observed } = onlyPrimary({ primaryUpdateStrategy: "supervised" }, { pendingRestart: true });
    const asked = { ...cluster, status: { ...cluster.status, phase: phases.inPlacePrimaryRestart } };
    expect(run({ cluster: asked, observed }).phase).toBe(phases.inPlacePrimaryRestart);
  });

  it("is restarted in place when that is enough", () => {
    const outcome = run(onlyPrimary({}, { pendingRestart: true }));
    expect(outcome.phase).toBe(phases.inPlacePrimaryRestart);
    expect(outcome.steps).toEqual([]);
  });

  it("is deleted without a switchover by the method restart", () => {
    const outcome = run(onlyPrimary({}));
    expect(outcome.phase).toBe(phases.inPlaceDeletePrimaryRestart);
    expect(outcome.steps).toEqual(["event UpgradingInstance", "deletePod c-1"]);
  });

  it("hands over by the method switchover", () => {
    const outcome = run(onlyPrimary({ primaryUpdateMethod: "switchover" }));
    expect(outcome.result.status.targetPrimary).toBe("c-2");
    expect(outcome.steps).toEqual(["event Switchover"]);
  });

  it("does not hand over to a replica that does not stream", () => {
    const given = onlyPrimary({ primaryUpdateMethod: "switchover" });
    const instances = given.observed.instances.map((it) =>
      it.kind === "answered" ? { ...it, status: { ...it.status, isWalReceiverActive: false } } : it,
    );
    const outcome = run({ ...given, observed: { ...given.observed, instances } });
    expect(outcome.result.status.targetPrimary).toBe("c-1");
    expect(outcome.result.requeueAfterMs).toBe(5_000);
  });

  it("restarts by itself to lower settings", () => {
    expect(run(onlyPrimary({}, { pendingRestart: true, pendingRestartForDecrease: true })).steps).toEqual([]);
  });

  it("that was deleted for a restart is waited for, and failed over only if it cannot come back", () => {
    const { cluster, observed } = aHealthyCluster();
    const status = { ...cluster.status, phase: phases.inPlaceDeletePrimaryRestart };
    const pods = observed.pods.slice(1);
    const instances = observed.instances
      .slice(1)
      .map((it) => (it.kind === "answered" ? { ...it, status: aStatus({ isWalReceiverActive: false }) } : it));
    const waiting = plan({ ...cluster, status }, { ...observed, pods, instances });
    expect(waiting.status.targetPrimary).toBe("c-1");
    expect(stepsOf(waiting.actions)).toEqual(["createPod c-1"]);
    const [first] = observed.pods;
    if (!first) throw new Error("the cluster has no pod");
    const unschedulable = [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "no node" }];
    const stuck = { ...first, status: { phase: "Pending", conditions: unschedulable } };
    const failed = plan({ ...cluster, status }, { ...observed, pods: [stuck, ...pods], instances });
    expect(failed.status.targetPrimary).toBe("c-2");
  });
});

describe("the rollout slot", () => {
  it("is taken before anything happens, with what was known of it, where pauses are wanted", () => {
    const { cluster, observed } = rolled(resources);
    const operator = { ...observed.operator, instancesRolloutDelayMs: 60_000 };
    const rolloutSlot = { cluster: "other/x", instance: "x-1", podUid: "", atMs: now.getTime() - 10_000 };
    const outcome = run({ cluster, observed: { ...observed, operator, rolloutSlot } });
    expect(outcome.steps).toEqual(["event UpgradingInstance", "takeRolloutSlot", "deletePod c-3"]);
    expect(outcome.result.actions.find((it) => it.kind === "takeRolloutSlot")).toMatchObject({
      instance: "c-3",
      podUid: "uid-pod-3",
      seenAtMs: rolloutSlot.atMs,
    });
  });

  const delays = { instancesRolloutDelayMs: 10_000, clustersRolloutDelayMs: 60_000 };
  it.each([
    ["is free when never taken", undefined, 0],
    ["keeps instances of one cluster apart", { cluster: "ns/c", instance: "c-1", atMs: now.getTime() - 4_000 }, 6_000],
    ["keeps clusters apart", { cluster: "ns/d", instance: "d-1", atMs: now.getTime() - 4_000 }, 56_000],
    ["is free after the pause", { cluster: "ns/d", instance: "d-1", atMs: now.getTime() - 60_000 }, 0],
  ])("%s", (_, slot, expected) => {
    expect(rolloutDelayMs(slot, "ns/c", delays, now)).toBe(expected);
  });
});

describe("a pod is replaced for", () => {
  type Edit = (pod: Pod) => Pod;
  const withSpec =
    (change: Partial<NonNullable<Pod["spec"]>>): Edit =>
    (pod) => ({
      ...pod,
      spec: { ...pod.spec, containers: pod.spec?.containers ?? [], ...change },
    });
  /** As pods were before they noted what they were asked to be. */
  const unrecorded: Edit = (pod) => {
    const { [keys.podSpec]: _, ...annotations } = pod.metadata.annotations ?? {};
    return { ...pod, metadata: { ...pod.metadata, annotations } };
  };
  const both =
    (...edits: Edit[]): Edit =>
    (pod) =>
      edits.reduce((it, edit) => edit(it), pod);
  const given = (edit: Edit, spec: Partial<Cluster["spec"]> = {}) => {
    const { cluster, observed } = rolled(spec);
    const pods = observed.pods.map((it) => (it.metadata.name === "c-3" ? edit(it) : it));
    return { cluster, observed: withPods(observed, pods) };
  };
  it.each<[string, Edit, Partial<Cluster["spec"]>, RegExp]>([
    [
      "a volume that it does not mount",
      (pod) => withSpec({ volumes: (pod.spec?.volumes ?? []).filter((it) => !it.persistentVolumeClaim) })(pod),
      {},
      /attaching a new PVC to the instance Pod$/,
    ],
    [
      "another projected volume",
      (pod) => pod,
      { projectedVolumeTemplate: { sources: [{ secret: { name: "s" } }] } },
      /projected volume configuration changed, old: null, new: \{.*"name":"s".*"defaultMode":420/,
    ],
    [
      "another scheduler, though it notes nothing",
      unrecorded,
      { schedulerName: "mine" },
      /scheduler name changed from: '.*', to 'mine'$/,
    ],
    [
      "another spread, though it notes nothing",
      unrecorded,
      { topologySpreadConstraints: [{ maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule" }] },
      /pod 'c-3' does not have up-to-date TopologySpreadConstraints. It needs to match the cluster's constraints.$/,
    ],
    [
      "another environment, though it notes nothing",
      unrecorded,
      { env: [{ name: "TZ", value: "UTC" }] },
      /environment variable configuration changed, old: \{.*\}, new: \{.*"TZ":"UTC".*\}$/,
    ],
  ])("%s", (_, edit, spec, reason) => {
    const outcome = run(given(edit, spec));
    expect(outcome.steps.filter((it) => it.startsWith("deletePod"))).toEqual(["deletePod c-3"]);
    expect(outcome.reason).toMatch(reason);
  });

  it("nothing when it notes nothing and is as it should be, whatever was added to it", () => {
    const added = withSpec({ tolerations: [{ key: "added", operator: "Exists" }] });
    expect(run(given(both(unrecorded, added))).steps).toEqual([]);
  });
});

describe("a pod made from another operator's image", () => {
  const other = { context: { operatorImageName: "example.org/operator:2" } };
  const given = (onlineUpdateEnabled: boolean, statuses: Statuses) => {
    const { cluster, observed } = rolled({}, statuses);
    const context = { ...observed.operator.context, ...other.context };
    return { cluster, observed: { ...observed, operator: { ...observed.operator, context, onlineUpdateEnabled } } };
  };
  const ours: Statuses = { "c-1": { cnpgTs: {} }, "c-2": { cnpgTs: {} }, "c-3": { cnpgTs: {} } };
  it.each<[string, boolean, Statuses, string[]]>([
    ["is replaced", false, ours, ["event UpgradingInstance", "deletePod c-3"]],
    ["stays where its manager is replaced in place", true, ours, []],
    [
      "is replaced when its manager is another's",
      true,
      { ...ours, "c-2": {} },
      ["event UpgradingInstance", "deletePod c-2"],
    ],
  ])("%s", (_, inPlace, statuses, steps) => {
    const outcome = run(given(inPlace, statuses));
    expect(outcome.steps.filter((it) => !/sendManager/.test(it))).toEqual(steps);
  });
});

describe("a primary without the part of a plugin that archives its WAL", () => {
  const plugin = { name: "p.example.org", isWALArchiver: true };
  const given = (spec: Partial<Cluster["spec"]>, sidecar: object) => {
    const { cluster, observed } = onlyPrimary({ primaryUpdateMethod: "switchover", plugins: [plugin], ...spec });
    const specs = observed.pods.map((it) => [it.metadata.name ?? "", it.spec] as const);
    const evaluated = new Map(
      specs.flatMap(([name, it]) => {
        if (!it) return [];
        const wanted = name === "c-1" ? { ...it, initContainers: [...(it.initContainers ?? []), sidecar] } : it;
        return [[name, wanted as typeof it] as const];
      }),
    );
    const plugins = { kind: "loaded", statuses: [], pre: { kind: "continue" }, evaluated } as const;
    return { cluster, observed: { ...observed, plugins } };
  };
  const sidecar = { name: "archiver", image: "i", restartPolicy: "Always" };
  it("is replaced where it is, since it could not hand over what it has not archived", () => {
    const outcome = run(given({}, sidecar));
    expect(outcome.steps).toContain("deletePod c-1");
    expect(outcome.phase).toBe(phases.inPlaceDeletePrimaryRestart);
  });
  it.each<[string, Partial<Cluster["spec"]>, object]>([
    ["the missing container only ran at the start", {}, { name: "setup", image: "i" }],
    ["the plugin archives nothing", { plugins: [{ name: "p.example.org" }] }, sidecar],
  ])("hands over when %s", (_, spec, container) => {
    const outcome = run(given(spec, container));
    expect(outcome.steps).toContain("event Switchover");
    expect(outcome.steps).not.toContain("deletePod c-1");
  });
});
