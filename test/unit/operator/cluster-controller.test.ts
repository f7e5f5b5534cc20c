import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Database } from "../../../src/api/generated/database.ts";
import { defaultBuildContext } from "../../../src/build/context.ts";
import { resources } from "../../../src/kube/resources.ts";
import { createAdmissionGuard } from "../../../src/operator/admission-guard.ts";
import { type ClusterReconcilerOptions, createClusterReconciler } from "../../../src/operator/cluster-controller.ts";
import { withoutPlugins } from "../../../src/operator/plugins/without-plugins.ts";
import { KubeError } from "../../../src/ports/kube-api.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createFakeKubeApi, type FakeKubeApi } from "../../support/fake-kube-api.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { createSeededRandom } from "../../support/seeded-random.ts";
import { aCluster } from "../plan/cluster/fixtures.ts";
import { type StartedStores, startStores } from "./started-stores.ts";

const key = { namespace: "ns", name: "d" };
const logs = captureLogs();
let api: FakeKubeApi;
let options: ClusterReconcilerOptions;
let started: StartedStores;

beforeEach(async () => {
  const clock = createFakeClock();
  api = createFakeKubeApi({ clock });
  const database: Database = {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Database",
    metadata: { ...key, finalizers: ["cnpg.io/deleteDatabase"] },
    spec: { name: "d", owner: "app", cluster: { name: "c" } },
  };
  api.seed(resources.databases, database);
  started = await startStores(api, clock);
  const { stores } = started;
  const unexpected = () => Promise.reject(new Error("no cluster is to be observed"));
  options = {
    api,
    stores,
    events: { record: () => undefined },
    clock,
    random: createSeededRandom(),
    context: defaultBuildContext,
    failpoint: () => undefined,
    takeRolloutSlot: () => undefined,
    demoted: { observe: async () => undefined, archivePartialWal: async () => undefined },
    observer: { observe: unexpected, poll: unexpected },
    guard: createAdmissionGuard(defaultBuildContext),
    borrowPlugins: async () => withoutPlugins(),
  };
});

afterEach(async () => {
  await started.stop();
});

const pass = () => createClusterReconciler(options)("ns/c", new AbortController().signal, { logger: logs.logger });
const finalizers = () => api.peek(resources.databases, key)?.metadata.finalizers ?? [];

describe("a cluster that the store does not show", () => {
  it("lets go of what belonged to it when it does not exist", async () => {
    await pass();
    expect(finalizers()).toEqual([]);
  });

  it("is looked at again when it exists after all", async () => {
    const get = (async () => ({ ...aCluster() })) as typeof api.get;
    options = { ...options, api: { ...api, get } };
    expect(await pass()).toEqual({ requeueAfterMs: 20 });
    expect(finalizers()).toEqual(["cnpg.io/deleteDatabase"]);
  });

  it("is not taken for deleted when the API server does not say", async () => {
    const get = (() => Promise.reject(new KubeError("get", { kind: "unavailable", status: 503 }))) as typeof api.get;
    options = { ...options, api: { ...api, get } };
    await expect(pass()).rejects.toThrow("get");
    expect(finalizers()).toEqual(["cnpg.io/deleteDatabase"]);
  });
});
