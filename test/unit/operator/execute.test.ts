import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import type { Pod } from "../../../src/api/generated/kubernetes.ts";
import { defaultBuildContext } from "../../../src/build/context.ts";
import { resources } from "../../../src/kube/resources.ts";
import { type ExecutorOptions, executeActions } from "../../../src/operator/execute.ts";
import { NotOwnedError } from "../../../src/operator/refusal.ts";
import { type ClusterAction, refTo } from "../../../src/plan/cluster/actions.ts";
import { isKubeError } from "../../../src/ports/kube-api.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createFakeKubeApi, type FakeKubeApi } from "../../support/fake-kube-api.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { createSeededRandom } from "../../support/seeded-random.ts";
import { aCluster, aPod } from "../plan/cluster/fixtures.ts";
import { type StartedStores, startStores } from "./started-stores.ts";

let api: FakeKubeApi;
let options: ExecutorOptions;
let cluster: Cluster;
let executed: string[];
let events: string[];
const logs = captureLogs();

let started: StartedStores;

beforeEach(async () => {
  const clock = createFakeClock();
  api = createFakeKubeApi({ clock });
  executed = [];
  events = [];
  const { resourceVersion: _, ...metadata } = aCluster().metadata;
  cluster = api.seed(resources.clusters, { ...aCluster(), metadata });
  started = await startStores(api, clock);
  const { stores } = started;
  options = {
    api,
    stores,
    events: { record: (_target, event) => events.push(event.reason) },
    clock,
    random: createSeededRandom(),
    context: defaultBuildContext,
    failpoint: (name) => executed.push(name),
    takeRolloutSlot: () => undefined,
    demoted: { archivePartialWal: async () => undefined },
  };
});

afterEach(async () => {
  await started.stop();
});

const run = (actions: ClusterAction[]) =>
  executeActions(options, cluster, actions, logs.logger, new AbortController().signal);

function seedPod(): Pod {
  const { resourceVersion: _, uid: __, ...metadata } = aPod(cluster, 1).metadata;
  return api.seed(resources.pods, { ...aPod(cluster, 1), metadata });
}

const patchStatus = (phase: string): ClusterAction => ({ kind: "patchStatus", patch: { phase }, reason: "r" });
const deletePod = (pod: Pod): ClusterAction => ({
  kind: "delete",
  target: refTo(pod),
  propagation: "Background",
  bestEffort: false,
  reason: "r",
});

describe("execution", () => {
  it("carries status patches of one plan on from each other", async () => {
    const after = await run([patchStatus("one"), patchStatus("two")]);
    expect(after.status?.phase).toBe("two");
    expect(options.stores.clusters.get({ namespace: "ns", name: "c" })?.status?.phase).toBe("two");
  });

  it("refuses to write the status on a version that the plan did not see", async () => {
    await api.patch(
      resources.clusters,
      { namespace: "ns", name: "c" },
      { type: "merge", body: { status: { phase: "x" } } },
      { subresource: "status" },
    );
    const error = await run([patchStatus("mine")]).catch((it: unknown) => it);
    expect(isKubeError(error, "conflict")).toBe(true);
    expect(api.peek(resources.clusters, { namespace: "ns", name: "c" })?.status?.phase).toBe("x");
  });

  it("deletes nothing once the cluster has changed since the plan was made", async () => {
    const pod = seedPod();
    const body = { status: { targetPrimary: "c-1" } };
    const changed = await api.patch(
      resources.clusters,
      { namespace: "ns", name: "c" },
      { type: "merge", body },
      { subresource: "status" },
    );
    expect(changed.status?.targetPrimary).toBe("c-1");
    const error = await run([deletePod(pod)]).catch((it: unknown) => it);
    expect(isKubeError(error, "conflict")).toBe(true);
    expect(api.peek(resources.pods, { namespace: "ns", name: "c-1" })).toBeDefined();
  });

  it("deletes after its own status patch, and only the very object it saw", async () => {
    const pod = seedPod();
    await run([patchStatus("one"), deletePod(pod)]);
    expect(api.peek(resources.pods, { namespace: "ns", name: "c-1" })).toBeUndefined();
    const another = seedPod();
    expect(another.metadata.uid).not.toBe(pod.metadata.uid);
    const error = await run2(patchStatus("two"), deletePod(pod)).catch((it: unknown) => it);
    expect(isKubeError(error, "conflict")).toBe(true);
    expect(api.peek(resources.pods, { namespace: "ns", name: "c-1" })).toBeDefined();
  });

  const run2 = (...actions: ClusterAction[]) => {
    cluster = options.stores.clusters.get({ namespace: "ns", name: "c" }) ?? cluster;
    return run(actions);
  };

  it("lets the next pass see what is on its way out, however far behind the watch is", async () => {
    const pod = seedPod();
    const leaving = { ...pod, metadata: { ...pod.metadata, deletionTimestamp: "2026-01-02T03:04:00Z" } };
    const observed: Pod[] = [];
    const pods = { ...options.stores.pods, type: resources.pods, observeWrite: (it: Pod) => observed.push(it) };
    // A real server keeps a running pod until its containers have ended.
    options.api = {
      ...api,
      get: (async (type, key, more) => (type.kind === "Pod" ? leaving : api.get(type, key, more))) as typeof api.get,
      delete: async () => undefined,
    };
    options.stores = { ...options.stores, pods: pods as unknown as typeof options.stores.pods };
    await run([deletePod(pod)]);
    expect(observed.map((it) => it.metadata.deletionTimestamp)).toEqual(["2026-01-02T03:04:00Z"]);
  });

  it("stops at the first failure", async () => {
    const pod = seedPod();
    await api.delete(resources.pods, { namespace: "ns", name: "c-1" });
    const patch: ClusterAction = {
      kind: "patch",
      target: refTo(pod),
      patch: { metadata: { labels: { a: "b" } } },
      bestEffort: false,
      reason: "r",
    };
    const error = await run([patch, patchStatus("never")]).catch((it: unknown) => it);
    expect(isKubeError(error, "notFound")).toBe(true);
    expect(executed).toEqual([]);
    expect(api.peek(resources.clusters, { namespace: "ns", name: "c" })?.status?.phase).toBeUndefined();
  });

  it("still makes what surrounds the instances after one such object was refused, and nothing else", async () => {
    const [taken, free] = ["taken", "free"].map((name) => ({
      apiVersion: "v1",
      kind: "Service",
      metadata: { namespace: "ns", name },
    }));
    if (!taken || !free) throw new Error("two Services are needed");
    api.seed(resources.services, { ...taken, apiVersion: "v1", kind: "Service" });
    const create = (object: typeof taken): ClusterAction => ({ kind: "create", object, mustOwn: true, reason: "r" });
    const seen: ClusterAction = { kind: "patchStatus", patch: { phase: "two", readyInstances: 2 }, reason: "r" };
    await expect(run([create(taken), seen, create(free)])).rejects.toThrow(NotOwnedError);
    expect(await api.get(resources.services, { namespace: "ns", name: "free" })).toBeDefined();
    const { status } = await api.get(resources.clusters, { namespace: "ns", name: "c" });
    expect(status).toMatchObject({ readyInstances: 2 });
    expect(status?.phase).not.toBe("two");
  });

  it("goes on after a best effort that failed", async () => {
    const pod = seedPod();
    await api.delete(resources.pods, { namespace: "ns", name: "c-1" });
    const patch: ClusterAction = {
      kind: "patch",
      target: refTo(pod),
      patch: { metadata: { labels: { a: "b" } } },
      bestEffort: true,
      reason: "r",
    };
    const after = await run([patch, patchStatus("went on")]);
    expect(after.status?.phase).toBe("went on");
  });

  it("adopts what exists and is the cluster's own, and refuses what is not", async () => {
    const service = (owned: boolean) => ({
      apiVersion: "v1" as const,
      kind: "Service" as const,
      metadata: {
        name: owned ? "mine" : "theirs",
        namespace: "ns",
        ...(owned
          ? {
              ownerReferences: [
                {
                  apiVersion: "postgresql.cnpg.io/v1",
                  kind: "Cluster",
                  name: "c",
                  uid: cluster.metadata.uid ?? "",
                  controller: true,
                },
              ],
            }
          : {}),
      },
    });
    for (const owned of [true, false]) api.seed(resources.services, service(owned));
    await run([{ kind: "create", object: service(true), mustOwn: true, reason: "r" }]);
    expect(options.stores.services.get({ namespace: "ns", name: "mine" })).toBeDefined();
    await expect(run([{ kind: "create", object: service(false), mustOwn: true, reason: "r" }])).rejects.toThrow(
      NotOwnedError,
    );
  });

  it("makes certificates that chain, and credentials with a password of their own", async () => {
    const leaf = { commonName: "c-rw", usage: "server" as const, dnsNames: ["c-rw"] };
    await run([
      {
        kind: "issueCertificate",
        certificate: {
          kind: "createAuthority",
          secret: "c-ca",
          commonName: "c",
          organizationalUnit: "ns",
          reason: "r",
        },
        reason: "r",
      },
      {
        kind: "issueCertificate",
        certificate: { kind: "createLeaf", secret: "c-server", authority: "c-ca", leaf, reason: "r" },
        reason: "r",
      },
      { kind: "createCredentials", user: "app", reason: "r" },
      { kind: "event", type: "Normal", event: "Told", message: "m", reason: "m" },
    ]);
    expect(api.peek(resources.secrets, { namespace: "ns", name: "c-server" })?.data).toHaveProperty(["tls.crt"]);
    const app = api.peek(resources.secrets, { namespace: "ns", name: "c-app" });
    expect(Buffer.from(app?.data?.["password"] ?? "", "base64").toString("utf8")).toMatch(/^[A-Za-z0-9]{64}$/);
    expect(events).toEqual(["Told"]);
    expect(executed).toEqual(["issueCertificate", "issueCertificate", "createCredentials", "event"]);
  });
});
