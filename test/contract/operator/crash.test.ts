import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import { resources } from "../../../src/kube/resources.ts";
import { buildOperatorProgram, type OperatorProgram } from "./operator-process.ts";
import { openScene, type Scene, startWorld, type World } from "./world.ts";

let world: World;
let scene: Scene;
let program: OperatorProgram;

beforeAll(async () => {
  world = await startWorld();
  scene = await openScene(world);
  program = await buildOperatorProgram(world);
});

afterAll(async () => {
  program?.remove();
  await scene?.stop();
  await world?.stop();
});

/**
 * Runs operators that each end after their second or third write, until the cluster is as wanted; returns how many it took.
 * Not after the first: that is the fingerprint of the new operator's certificate, again and again.
 */
async function crashUntil(name: string, isDone: (cluster: Cluster) => boolean): Promise<number> {
  for (let count = 1; count <= 150; count += 1) {
    const operator = await program.start({
      namespace: scene.namespace,
      env: { CNPG_TS_FAILPOINT: `anyWrite:${2 + (count % 2)}` },
    });
    const over = new AbortController();
    const outcome = await Promise.race([operator.ended, settled(name, isDone, over.signal)]);
    over.abort();
    if (outcome === "settled") {
      await operator.stop();
      return count;
    }
    expect(outcome, operator.log().slice(-2_000)).toBe(86);
  }
  throw new Error(`cluster ${name} did not get there: ${JSON.stringify((await scene.cluster(name)).status)}`);
}

/** Looks until the cluster is as wanted and at rest, or nobody waits for it any more. */
async function settled(
  name: string,
  isDone: (cluster: Cluster) => boolean,
  over: AbortSignal,
): Promise<"settled" | "given up"> {
  while (!over.aborted) {
    const before = await scene.cluster(name);
    await new Promise((resolve) => setTimeout(resolve, 300));
    if (over.aborted) break;
    const after = await scene.cluster(name);
    if (isDone(after) && before.metadata.resourceVersion === after.metadata.resourceVersion) return "settled";
  }
  return "given up";
}

const healthy = "Cluster in healthy state";

const isHealthy = (primary: (name: string) => boolean) => (cluster: Cluster) =>
  cluster.status?.phase === healthy &&
  cluster.status.readyInstances === 3 &&
  cluster.status.jobCount === 0 &&
  primary(cluster.status.currentPrimary ?? "");

describe("an operator that is killed again and again between two writes", () => {
  it("still brings three instances up", async () => {
    await scene.create("k");
    const operators = await crashUntil(
      "k",
      isHealthy((it) => it === "k-1"),
    );
    expect(operators).toBeGreaterThan(8);
  }, 240_000);

  it("still makes a cluster smaller, and leaves nothing of the third behind", async () => {
    await scene.patchSpec("k", { instances: 2 });
    await crashUntil("k", (cluster) => cluster.status?.phase === healthy && cluster.status.pvcCount === 2);
    expect(await scene.find(resources.pods, "k-3")).toBeUndefined();
    expect(await scene.find(resources.persistentVolumeClaims, "k-3")).toBeUndefined();
    await scene.patchSpec("k", { instances: 3 });
    await crashUntil(
      "k",
      isHealthy((it) => it === "k-1"),
    );
  }, 240_000);

  it("still fails over, and gets the old primary back", async () => {
    await scene.node.killPod("k-1");
    const operators = await crashUntil(
      "k",
      isHealthy((it) => it === "k-2" || it === "k-3"),
    );
    expect(operators).toBeGreaterThan(1);
    const events = await scene.events();
    expect(events.some((it) => it.reason === "FailingOver")).toBe(true);
  }, 240_000);
});
