import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import { resources } from "../../../src/kube/resources.ts";
import { isWrite } from "../../../src/operator/failpoint.ts";
import { createOperatorIdentity, type OperatorIdentity } from "../../../src/operator/operator-identity.ts";
import { openScene, type Scene, startOperator, startWorld, type World } from "./world.ts";

let world: World;
let scene: Scene;
let identity: OperatorIdentity;

beforeAll(async () => {
  world = await startWorld();
  scene = await openScene(world);
  // A new one would be told by the first write of each operator, and none would get any further.
  identity = await createOperatorIdentity("crash-test", Date.now());
});

afterAll(async () => {
  await scene?.stop();
  await world?.stop();
});

/** Runs operators that each end right after their first write, until one finds nothing left to write; what each wrote. */
async function crashUntil(name: string, isDone: (cluster: Cluster) => boolean): Promise<string[]> {
  const crashes: string[] = [];
  while (crashes.length < 250) {
    let wrote = false;
    const operator = startOperator(
      world,
      scene.namespace,
      (action) => {
        if (!isWrite(action) || wrote) return;
        wrote = true;
        crashes.push(action);
        throw new Error("killed");
      },
      {},
      undefined,
      { identity },
    );
    const over = new AbortController();
    const ended = operator.ended.finally(() => over.abort());
    await settled(name, isDone, over.signal);
    if (!over.signal.aborted) {
      await operator.stop();
      return crashes;
    }
    await ended;
  }
  const { status } = await scene.cluster(name);
  throw new Error(`cluster ${name} did not get there: ${JSON.stringify({ crashes, status })}`);
}

/** Resolves once the cluster is as wanted and nobody writes to it any more, or the operator is gone. */
async function settled(name: string, isDone: (cluster: Cluster) => boolean, gone: AbortSignal): Promise<void> {
  let version: string | undefined;
  while (!gone.aborted) {
    const cluster = await scene.cluster(name);
    if (isDone(cluster) && cluster.metadata.resourceVersion === version) return;
    version = cluster.metadata.resourceVersion;
    await delay(400, undefined, { signal: gone }).catch(() => undefined);
  }
}

const isHealthy = (instances: number, primary: RegExp) => (cluster: Cluster) =>
  cluster.status?.phase === "Cluster in healthy state" &&
  cluster.status.readyInstances === instances &&
  cluster.status.jobCount === 0 &&
  primary.test(cluster.status.currentPrimary ?? "") &&
  cluster.status.currentPrimary === cluster.status.targetPrimary;

async function names(type: typeof resources.pods | typeof resources.persistentVolumeClaims): Promise<string[]> {
  const found = await world.api.list(type as typeof resources.pods, { namespace: scene.namespace });
  return found.map((it) => it.metadata.name ?? "").sort();
}

async function roles(): Promise<Record<string, string | undefined>> {
  const pods = await world.api.list(resources.pods, { namespace: scene.namespace });
  return Object.fromEntries(pods.map((it) => [it.metadata.name, it.metadata.labels?.["cnpg.io/instanceRole"]]));
}

describe("an operator that is killed after each single write", () => {
  it("still brings the first instance up", async () => {
    await scene.create("k", { instances: 1 });
    const crashes = await crashUntil("k", isHealthy(1, /^k-1$/));
    // Each object of a new cluster was somebody's last write.
    const kinds = ["Service", "PodDisruptionBudget", "ServiceAccount", "Role", "RoleBinding", "Lease"];
    expect(new Set(crashes)).toEqual(
      new Set([
        ...["issueCertificate", "createCredentials", "patchStatus", "deleteJob", "updateRole", "patchPod"],
        ...[...kinds, "PersistentVolumeClaim", "Job", "Pod"].map((it) => `create${it}`),
        "patchPersistentVolumeClaim",
      ]),
    );
    expect(await names(resources.pods)).toEqual(["k-1"]);
    expect(await names(resources.persistentVolumeClaims)).toEqual(["k-1"]);
  }, 240_000);

  it.each([2, 3])(
    "still lets instance %i join, once",
    async (instances) => {
      await scene.patchSpec("k", { instances });
      const crashes = await crashUntil("k", isHealthy(instances, /^k-1$/));
      expect(crashes.length).toBeGreaterThan(4);
      const all = ["k-1", "k-2", "k-3"].slice(0, instances);
      expect(await names(resources.pods)).toEqual(all);
      expect(await names(resources.persistentVolumeClaims)).toEqual(all);
      expect(await world.api.list(resources.jobs, { namespace: scene.namespace })).toEqual([]);
    },
    240_000,
  );

  it("still fails over once, and gets the old primary back", async () => {
    await scene.node.killPod("k-1");
    const crashes = await crashUntil("k", isHealthy(3, /^k-[23]$/));
    expect(crashes.length).toBeGreaterThan(2);
    const primary = (await scene.cluster("k")).status?.currentPrimary ?? "";
    expect(await roles()).toEqual({ "k-1": "replica", "k-2": "replica", "k-3": "replica", [primary]: "primary" });
    expect((await scene.cluster("k")).status?.timelineID).toBe(2);
    expect(await names(resources.persistentVolumeClaims)).toEqual(["k-1", "k-2", "k-3"]);
  }, 240_000);

  it("still hands over when it is asked to", async () => {
    const phase = "Switchover in progress";
    await scene.patchStatus("k", { targetPrimary: "k-1", phase, phaseReason: "Switching over to k-1" });
    await crashUntil("k", isHealthy(3, /^k-1$/));
    expect(await roles()).toEqual({ "k-1": "primary", "k-2": "replica", "k-3": "replica" });
  }, 240_000);
});
