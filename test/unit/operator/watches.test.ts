import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Node, Secret } from "../../../src/api/generated/kubernetes.ts";
import { resources } from "../../../src/kube/resources.ts";
import { subscribeWatches } from "../../../src/operator/watches.ts";
import type { KubeObject, ResourceType } from "../../../src/ports/kube-api.ts";
import { createFakeClock, type FakeClock } from "../../support/fake-clock.ts";
import { createFakeKubeApi, type FakeKubeApi } from "../../support/fake-kube-api.ts";
import { aCluster, aJob, aPod, volumesOf } from "../plan/cluster/fixtures.ts";
import { type StartedStores, startStores } from "./started-stores.ts";

let api: FakeKubeApi;
let clock: FakeClock;
let keys: string[];
let started: StartedStores;

const cluster = aCluster({ managed: { roles: [{ name: "r", passwordSecret: { name: "role-secret" } }] } });

beforeEach(async () => {
  clock = createFakeClock();
  api = createFakeKubeApi({ clock });
  seed(resources.clusters, cluster);
  started = await startStores(api, clock);
  keys = [];
  const sources = { namespace: "ops", names: ["queries"] };
  subscribeWatches({ stores: started.stores, drainTaints: ["drain"], sources, enqueue: (key) => keys.push(key) });
});

afterEach(() => started.stop());

function seed<T extends KubeObject>(type: ResourceType<T>, object: T): T {
  const { resourceVersion: _, ...metadata } = object.metadata;
  return api.seed(type, { ...object, metadata });
}

async function keysAfter(act: () => unknown): Promise<string[]> {
  keys.length = 0;
  await act();
  await clock.settle();
  return [...new Set(keys)];
}

const secret = (name: string, namespace = "ns"): Secret => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name, namespace },
});
const [volume] = volumesOf(cluster, 1);

describe("a change wakes its cluster", () => {
  it.each<[string, () => unknown]>([
    ["of a pod", () => seed(resources.pods, aPod(cluster, 1))],
    ["of a volume", () => volume && seed(resources.persistentVolumeClaims, volume)],
    ["of a Job", () => seed(resources.jobs, aJob(cluster, 1, "join", "running"))],
    ["of its authority's Secret", () => seed(resources.secrets, secret("c-ca"))],
    ["of a Secret that a managed role names", () => seed(resources.secrets, secret("role-secret"))],
    ["of a Secret of the operator's that is copied", () => seed(resources.secrets, secret("queries", "ops"))],
  ])("%s", async (_, act) => {
    expect(await keysAfter(act)).toEqual(["ns/c"]);
  });

  it("of a pod of one of its Jobs, which the Job controls", async () => {
    const job = aJob(cluster, 1, "join", "running");
    const pod = {
      ...aPod(cluster, 1),
      metadata: { name: "x", namespace: "ns", labels: job.spec?.template.metadata?.labels ?? {} },
    };
    expect(await keysAfter(() => seed(resources.pods, pod))).toEqual(["ns/c"]);
  });
});

describe("a change wakes nobody", () => {
  it.each<[string, () => unknown]>([
    ["of a Secret that nobody names", () => seed(resources.secrets, secret("other"))],
    ["of another Secret of the operator's", () => seed(resources.secrets, secret("other", "ops"))],
    ["of a Secret of the same name elsewhere", () => seed(resources.secrets, secret("c-ca", "elsewhere"))],
  ])("%s", async (_, act) => {
    expect(await keysAfter(act)).toEqual([]);
  });
});

describe("a lease", () => {
  it("wakes its cluster only when it is gone: renewals are the instances' business", async () => {
    const owner = { apiVersion: "postgresql.cnpg.io/v1", kind: "Cluster", name: "c", uid: "uid-c", controller: true };
    const metadata = { name: "c", namespace: "ns", labels: { "cnpg.io/cluster": "c" }, ownerReferences: [owner] };
    const lease = { apiVersion: "coordination.k8s.io/v1" as const, kind: "Lease" as const, metadata };
    expect(await keysAfter(() => seed(resources.leases, lease))).toEqual([]);
    expect(await keysAfter(() => api.delete(resources.leases, { namespace: "ns", name: "c" }))).toEqual(["ns/c"]);
  });
});

describe("a node", () => {
  const node = (spec: Node["spec"]): Node => ({
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "node-1" },
    ...(spec ? { spec } : {}),
  });

  it.each<[string, Node["spec"], string[]]>([
    ["that is cordoned", { unschedulable: true }, ["ns/c"]],
    ["that gets a taint which announces a drain", { taints: [{ key: "drain", effect: "NoSchedule" }] }, ["ns/c"]],
    ["that gets another taint", { taints: [{ key: "other", effect: "NoSchedule" }] }, []],
  ])("%s wakes the clusters whose primary it runs: %j", async (_, spec, expected) => {
    const primary = aCluster({}, { currentPrimary: "c-1" });
    seed(resources.nodes, node(undefined));
    seed(resources.pods, aPod(primary, 1));
    await clock.settle();
    const patch = { type: "merge" as const, body: { spec } };
    expect(await keysAfter(() => api.patch(resources.nodes, { name: "node-1" }, patch))).toEqual(expected);
  });
});
