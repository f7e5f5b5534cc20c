import { describe, expect, it } from "vitest";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import type { Pod } from "../../../../src/api/generated/kubernetes.ts";
import { aHealthyCluster, aPod, plan, silent, stepsOf, withPods } from "./fixtures.ts";

type Spec = Partial<Cluster["spec"]>;

const unschedulable = {
  conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "m" }],
};
const unpullable = {
  containerStatuses: [
    {
      name: "postgres",
      image: "i",
      imageID: "",
      ready: false,
      restartCount: 0,
      state: { waiting: { reason: "ImagePullBackOff" } },
    },
  ],
};

/** Steps for a cluster of three whose `c-3` is pending for the given cause; `spec` is what the cluster asks for by now. */
function steps(cause: Partial<NonNullable<Pod["status"]>>, spec: Spec, primary: "well" | "silent" = "well"): string[] {
  const { cluster, observed } = aHealthyCluster();
  const pod = aPod(cluster, 3, "pending");
  const stuck: Pod = { ...pod, status: { phase: "Pending", ...cause } };
  const given = withPods(observed, [...observed.pods.slice(0, 2), stuck]);
  const instances = given.instances.map((it) => (it.name === "c-1" && primary === "silent" ? silent(it.pod) : it));
  const asked = { ...cluster, spec: { ...cluster.spec, ...spec } };
  return stepsOf(plan(asked, { ...given, instances }).actions).filter((it) => it.startsWith("delete"));
}

const maintenance: Spec = { nodeMaintenanceWindow: { inProgress: true, reusePVC: false } };
const resources: Spec = { resources: { requests: { cpu: "1" } } };

describe("a pod that never started", () => {
  it.each<[string, string[], string[]]>([
    ["fits nowhere and is as wanted: waits", steps(unschedulable, {}), []],
    ["fits nowhere and is outdated: made anew", steps(unschedulable, resources), ["deletePod c-3"]],
    ["has no image and is as wanted: waits", steps(unpullable, {}), []],
    [
      "has no image and the cluster asks for another: made anew",
      steps(unpullable, { imageName: "x:17" }),
      ["deletePod c-3"],
    ],
    ["is just slow: waits, outdated or not", steps({}, resources), []],
    [
      "fits nowhere in a maintenance that gives volumes up: cloned elsewhere",
      steps(unschedulable, maintenance),
      ["deletePersistentVolumeClaim c-3", "deletePod c-3"],
    ],
    ["has no image in such a maintenance: keeps its volume", steps(unpullable, maintenance), []],
    ["fits nowhere while the primary is silent: keeps its volume", steps(unschedulable, maintenance, "silent"), []],
  ])("%s", (_, actual, expected) => {
    expect(actual).toEqual(expected);
  });
});
