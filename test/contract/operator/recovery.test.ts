import { afterAll, beforeAll, expect, it } from "vitest";
import { waitFor } from "../../../local/process/wait.ts";
import { resources } from "../../../src/kube/resources.ts";
import { closeStage, openStage, type RunningOperator, type Scene, type World } from "./world.ts";

let world: World;
let scene: Scene;
let operator: RunningOperator;

beforeAll(async () => {
  ({ world, scene, operator } = await openStage());
});

afterAll(() => closeStage({ world, scene, operator }));

it("recovers the first instance by its Job and goes on to healthy ones", async () => {
  const barmanObjectStore = { destinationPath: "s3://backups/a", s3Credentials: { inheritFromIAMRole: true } };
  await scene.create("r", {
    instances: 2,
    bootstrap: { recovery: { source: "origin", database: "app", owner: "app" } },
    externalClusters: [{ name: "origin", barmanObjectStore }],
  });
  await waitFor("the recovery Job", async () => (await scene.find(resources.jobs, "r-1-full-recovery")) !== undefined, {
    timeoutMs: 30_000,
  });
  const cluster = await scene.waitHealthy("r", 2);
  expect(cluster.status).toMatchObject({ currentPrimary: "r-1", instanceNames: ["r-1", "r-2"] });
  expect((await scene.events()).map((it) => it.message)).toContain("Primary instance (from backup)");
});
