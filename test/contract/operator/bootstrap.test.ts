import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { resources } from "../../../src/kube/resources.ts";
import { closeStage, endedPasses, openStage, type RunningOperator, type Scene, type World } from "./world.ts";

let world: World;
let scene: Scene;
let operator: RunningOperator;

beforeAll(async () => {
  ({ world, scene, operator } = await openStage());
});

afterAll(() => closeStage({ world, scene, operator }));

describe("bootstrap", () => {
  it("brings three instances up from nothing", async () => {
    await scene.create("c");
    const cluster = await scene.waitHealthy("c", 3);
    expect(cluster.status).toMatchObject({
      currentPrimary: "c-1",
      targetPrimary: "c-1",
      instanceNames: ["c-1", "c-2", "c-3"],
    });
    const pods = await world.api.list(resources.pods, { namespace: scene.namespace });
    const roles = pods.map((it) => [it.metadata.name, it.metadata.labels?.["role"]]);
    expect(Object.fromEntries(roles)).toEqual({ "c-1": "primary", "c-2": "replica", "c-3": "replica" });
  });

  it("then writes nothing more, however often it looks", async () => {
    await quiet();
    const before = await versions();
    for (const mark of ["1", "2", "3"]) {
      const passes = endedPasses(operator, "c").length;
      await scene.annotate("c", { "cnpg.io/reloadedAt": mark });
      await expect.poll(() => endedPasses(operator, "c").length, { timeout: 20_000 }).toBeGreaterThan(passes);
    }
    expect(await versions()).toEqual(before);
  });
});

/** Resolves when what a pass wrote has led to no other pass for a while. */
async function quiet(): Promise<void> {
  for (let before = -1, now = 0; before !== now; before = now, now = endedPasses(operator, "c").length) {
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

/** Version of every child of the cluster, and the status of the cluster itself. */
async function versions(): Promise<Record<string, unknown>> {
  const types = [
    resources.pods,
    resources.persistentVolumeClaims,
    resources.services,
    resources.secrets,
    resources.serviceAccounts,
    resources.roles,
    resources.roleBindings,
    resources.podDisruptionBudgets,
    resources.leases,
    resources.jobs,
  ] as const;
  const result: Record<string, unknown> = { status: (await scene.cluster("c")).status };
  for (const type of types) {
    const objects = await world.api.list(type as typeof resources.pods, { namespace: scene.namespace });
    for (const it of objects) result[`${type.kind} ${it.metadata.name}`] = it.metadata.resourceVersion;
  }
  return result;
}
