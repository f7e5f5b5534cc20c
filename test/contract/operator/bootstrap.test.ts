import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { resources } from "../../../src/kube/resources.ts";
import { openScene, type RunningOperator, type Scene, startOperator, startWorld, type World } from "./world.ts";

let world: World;
let scene: Scene;
let operator: RunningOperator;

beforeAll(async () => {
  world = await startWorld();
  scene = await openScene(world);
  operator = startOperator(world, scene.namespace);
});

afterAll(async () => {
  await operator?.stop();
  await scene?.stop();
  await world?.stop();
});

describe("bootstrap", () => {
  it("brings three instances up from nothing", async () => {
    const began = Date.now();
    await scene.create("c");
    const cluster = await scene.waitHealthy("c", 3);
    expect(Date.now() - began).toBeLessThan(15_000);
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
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const before = await versions();
    for (const mark of ["1", "2", "3"]) {
      await scene.annotate("c", { "cnpg.io/reloadedAt": mark });
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    expect(await versions()).toEqual(before);
  });
});

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
