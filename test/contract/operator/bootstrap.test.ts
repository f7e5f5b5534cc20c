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
});
