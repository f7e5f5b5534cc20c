import { describe, expect, it } from "vitest";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import { phases } from "../../../../src/api/phases.ts";
import { keepWalStorage } from "../../../../src/plan/cluster/kept-volumes.ts";
import { aCluster, aHealthyCluster, plan, stepsOf, volumesOf } from "./fixtures.ts";

const withWal: Partial<Cluster["spec"]> = { walStorage: { size: "3Gi", storageClass: "fast" } };
const without = aCluster();
const volumes = volumesOf(aCluster(withWal), 1);
const ending = volumes.map((it) => ({
  ...it,
  metadata: { ...it.metadata, deletionTimestamp: "2026-11-30T00:00:00Z" },
}));

describe("a section for WAL that is gone while volumes hold WAL", () => {
  it("is taken to be there still, as the volumes are", () => {
    expect(keepWalStorage(without, volumes).spec.walStorage).toEqual({ size: "3Gi", storageClass: "fast" });
  });

  it.each<[string, Cluster, ReturnType<typeof volumesOf>]>([
    ["is not missed where there is no such volume", without, volumesOf(without, 1)],
    ["is not missed where such a volume goes", without, ending],
    [
      "may go where the user switched the rules off",
      aCluster({}, {}, { annotations: { "cnpg.io/validation": "disabled" } }),
      volumes,
    ],
    ["stays as it is where it is there", aCluster({ walStorage: { size: "5Gi" } }), volumes],
  ])("%s", (_, cluster, shown) => {
    expect(keepWalStorage(cluster, shown)).toBe(cluster);
  });

  it("costs no instance its volume, and is told", () => {
    const { cluster, observed } = aHealthyCluster(withWal);
    const { walStorage: _, ...spec } = cluster.spec;
    const result = plan({ ...cluster, spec }, observed);
    expect(stepsOf(result.actions)).toEqual(["event InvalidClusterDefinition"]);
    expect(result.status).toMatchObject({
      phase: phases.invalid,
      phaseReason: expect.stringContaining("spec.walStorage cannot be removed"),
    });
    const again = plan({ ...cluster, spec, status: result.status }, observed);
    expect(stepsOf(again.actions)).toEqual([]);
    expect(plan({ ...cluster, status: result.status }, observed).status.phase).toBe(phases.healthy);
  });
});
