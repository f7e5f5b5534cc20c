import { describe, expect, it } from "vitest";
import type { Pod } from "../../../../src/api/generated/kubernetes.ts";
import { aCluster, anObservation, aPod, aSettledObservation, plan, stepsOf, volumesOf, withImage } from "./fixtures.ts";

const cluster = aCluster();

/** The volumes of a former cluster of the same name, of which one was primary. */
function orphans(primary?: number) {
  const former = aCluster({}, primary === undefined ? {} : { currentPrimary: `c-${primary}` });
  return [1, 2]
    .flatMap((serial) => volumesOf(former, serial))
    .map((it) => ({
      ...it,
      metadata: { ...it.metadata, ownerReferences: [] },
    }));
}

describe("volumes that belong to nobody", () => {
  it.each([
    [undefined, "c-2"],
    [1, "c-1"],
  ])("with %s labelled primary are adopted with the target %s", (labelled, target) => {
    const result = plan(cluster, anObservation({ orphanVolumes: orphans(labelled) }));
    expect(stepsOf(result.actions)).toEqual(["patchPersistentVolumeClaim c-1", "patchPersistentVolumeClaim c-2"]);
    expect(result.status.targetPrimary).toBe(target);
    expect(result.status.conditions?.find((it) => it.type === "Initialized")?.status).toBe("True");
    const [first] = result.actions.filter((it) => it.kind === "patch");
    expect(first?.patch).toMatchObject({
      metadata: {
        ownerReferences: [{ kind: "Cluster", name: "c", uid: "uid-c", controller: true }],
        annotations: { "cnpg.io/pvcStatus": "ready", "cnpg.io/clusterManifest": null },
      },
    });
  });

  it("go on being adopted when the operator ended in between, with the same target", () => {
    const [first, second] = orphans();
    if (!first || !second) throw new Error("two volumes are needed");
    const begun = withImage(aCluster({}, { targetPrimary: "c-2" }));
    const observed = aSettledObservation(begun, { volumes: volumesOf(begun, 2), orphanVolumes: [first] });
    const result = plan(begun, observed);
    expect(stepsOf(result.actions)).toEqual(["patchPersistentVolumeClaim c-1"]);
    expect(result.status.targetPrimary).toBe("c-2");
  });

  it("then get the pod of the target first", () => {
    const begun = withImage(aCluster({}, { targetPrimary: "c-2" }));
    const observed = aSettledObservation(begun, { volumes: [1, 2].flatMap((serial) => volumesOf(begun, serial)) });
    expect(stepsOf(plan(begun, observed).actions)).toEqual(["createPod c-2"]);
  });

  it("are left alone by a cluster that has had a primary", () => {
    const old = withImage(aCluster({ instances: 1 }, { currentPrimary: "c-3", targetPrimary: "c-3" }));
    const steps = stepsOf(
      plan(old, aSettledObservation(old, { orphanVolumes: orphans(), volumes: volumesOf(old, 3) })).actions,
    );
    expect(steps.some((it) => it.includes("c-1"))).toBe(false);
  });

  it("lose the pods that still use them, once those have started", () => {
    const starting: Pod = { ...aPod(cluster, 1), metadata: { ...aPod(cluster, 1).metadata, ownerReferences: [] } };
    const waiting = plan(cluster, anObservation({ orphanVolumes: orphans(), orphanPods: [starting] }));
    expect(stepsOf(waiting.actions)).toEqual([]);
    expect(waiting.requeueAfterMs).toBe(5_000);
    const ended = { name: "bootstrap-controller", image: "i", imageID: "", ready: true, restartCount: 0 };
    const started: Pod = {
      ...starting,
      status: { ...starting.status, initContainerStatuses: [{ ...ended, state: { terminated: { exitCode: 0 } } }] },
    };
    const result = plan(cluster, anObservation({ orphanVolumes: orphans(), orphanPods: [started] }));
    expect(stepsOf(result.actions)[0]).toBe("deletePod c-1");
  });

  it("unfence the cluster and drop Services of its name that nobody owns", () => {
    const fenced = aCluster({}, {}, { annotations: { "cnpg.io/fencedInstances": '["*"]' } });
    const service = {
      apiVersion: "v1" as const,
      kind: "Service" as const,
      metadata: { name: "c-rw", namespace: "ns", uid: "s", labels: { "cnpg.io/cluster": "c" } },
    };
    const result = plan(fenced, anObservation({ orphanVolumes: orphans(), services: new Map([["c-rw", service]]) }));
    expect(stepsOf(result.actions).slice(0, 2)).toEqual(["patchCluster", "deleteService c-rw"]);
  });
});
