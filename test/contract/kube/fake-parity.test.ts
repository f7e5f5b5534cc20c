import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ControlPlane, startControlPlane } from "../../../local/control-plane/control-plane.ts";
import type { ConfigMap, PodDisruptionBudget } from "../../../src/api/generated/kubernetes.ts";
import { createKubeApi } from "../../../src/kube/create-kube-api.ts";
import type { KubeClient } from "../../../src/kube/kube-client.ts";
import { loadKubeconfigConnection } from "../../../src/kube/kubeconfig.ts";
import { resources } from "../../../src/kube/resources.ts";
import { isKubeError, type KubeObject } from "../../../src/ports/kube-api.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createFakeKubeApi } from "../../support/fake-kube-api.ts";

// Unit tests and the simulation believe what the fake server does, so it has to do what the real one does.
let controlPlane: ControlPlane;
let real: KubeClient;

beforeAll(async () => {
  controlPlane = await startControlPlane();
  real = createKubeApi(loadKubeconfigConnection(controlPlane.kubeconfig));
});
afterAll(async () => {
  await real?.close();
  await controlPlane?.stop();
});

const maps = resources.configMaps;
const budgets = resources.podDisruptionBudgets;
const key = { namespace: "default", name: "it" };

/** Runs one step and keeps what a caller could tell apart: data, not clocks, versions or identities. */
async function outcome(step: Promise<unknown>): Promise<unknown> {
  try {
    return simplify(await step);
  } catch (error) {
    if (!isKubeError(error)) throw error;
    return { kind: error.kind, status: error.status };
  }
}

function simplify(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(simplify).sort();
  if (typeof value !== "object" || value === null) return value;
  const { metadata, ...rest } = value as KubeObject & Record<string, unknown>;
  const { name, labels, annotations, finalizers, generation, deletionTimestamp } = metadata;
  return { name, labels, annotations, finalizers, generation, deleting: deletionTimestamp !== undefined, ...rest };
}

const aMap = (extra: Partial<ConfigMap> = {}): ConfigMap => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { ...key },
  data: { a: "1" },
  ...extra,
});
const aBudget = (): PodDisruptionBudget => ({
  apiVersion: "policy/v1",
  kind: "PodDisruptionBudget",
  metadata: { ...key },
  spec: { minAvailable: 1, selector: { matchLabels: { app: "x" } } },
});
const merge = (body: unknown) => ({ type: "merge", body }) as const;
const apply = (fieldManager: string, data: Record<string, string>) =>
  ({
    type: "apply",
    fieldManager,
    force: true,
    body: { apiVersion: "v1", kind: "ConfigMap", metadata: { ...key }, data },
  }) as const;

type Scenario = (api: KubeClient, record: (step: Promise<unknown>) => Promise<void>) => Promise<void>;

const scenarios: Record<string, Scenario> = {
  async "create, conflict and absence"(api, record) {
    await record(api.get(maps, key));
    await record(api.delete(maps, key));
    await record(api.patch(maps, key, merge({ data: { a: "1" } })));
    await record(api.create(maps, aMap()));
    await record(api.create(maps, aMap()));
    const stale = await api.get(maps, key);
    await record(api.update(maps, { ...stale, data: { a: "2" } }));
    await record(api.update(maps, { ...stale, data: { a: "3" } }));
    await record(
      api.patch(maps, key, merge({ metadata: { resourceVersion: stale.metadata.resourceVersion }, data: { b: "1" } })),
    );
    await record(api.patch(maps, key, merge({ data: { a: null, c: "1" } })));
    await record(api.patch(maps, key, { type: "json", body: [{ op: "add", path: "/data/d", value: "4" }] }));
    await record(api.patch(maps, key, { type: "json", body: [{ op: "test", path: "/data/d", value: "no" }] }));
    await record(api.delete(maps, key, { uid: "another" }));
    await record(api.delete(maps, key, { resourceVersion: stale.metadata.resourceVersion ?? "" }));
    await record(api.delete(maps, key));
    await record(api.get(maps, key));
  },
  async "writes that change nothing keep the version"(api, record) {
    const created = await api.create(maps, aMap());
    const same = await api.patch(maps, key, merge({ data: { a: "1" } }));
    await record(Promise.resolve(same.metadata.resourceVersion === created.metadata.resourceVersion));
    const updated = await api.update(maps, created);
    await record(Promise.resolve(updated.metadata.resourceVersion === created.metadata.resourceVersion));
  },
  async "status is a part of its own, and only the specification has generations"(api, record) {
    const status = { currentHealthy: 1, desiredHealthy: 1, disruptionsAllowed: 0, expectedPods: 1 };
    const relevant = async (step: Promise<PodDisruptionBudget>) => {
      const { metadata, spec, status: now } = await step;
      return {
        generation: metadata.generation,
        labels: metadata.labels,
        min: spec?.minAvailable,
        healthy: now?.currentHealthy ?? 0,
      };
    };
    const plain = (value: Promise<unknown>) => value.then((it) => JSON.stringify(it));
    await record(plain(relevant(api.create(budgets, { ...aBudget(), status }))));
    await record(
      plain(relevant(api.patch(budgets, key, merge({ status, spec: { minAvailable: 2 } }), { subresource: "status" }))),
    );
    await record(
      plain(
        relevant(
          api.patch(budgets, key, merge({ status: { ...status, currentHealthy: 9 }, spec: { minAvailable: 3 } })),
        ),
      ),
    );
    await record(plain(relevant(api.patch(budgets, key, merge({ metadata: { labels: { x: "y" } } })))));
  },
  async "finalizers hold an object until they are gone"(api, record) {
    await record(api.create(maps, aMap({ metadata: { ...key, finalizers: ["example.test/hold"] } })));
    await record(api.delete(maps, key));
    await record(api.get(maps, key));
    await record(api.delete(maps, key));
    await record(api.patch(maps, key, merge({ metadata: { finalizers: null } })));
    await record(api.get(maps, key));
  },
  async "apply creates, adds, and removes what its manager no longer names"(api, record) {
    await record(api.patch(maps, key, apply("one", { a: "1", b: "2" })));
    await record(api.patch(maps, key, apply("two", { c: "3" })));
    await record(api.patch(maps, key, apply("one", { a: "5" })));
  },
  async "lists select"(api, record) {
    for (const [name, label] of [
      ["it", "x"],
      ["other", "y"],
      ["third", undefined],
    ] as const) {
      await api.create(
        maps,
        aMap({ metadata: { namespace: "default", name, labels: label ? { parity: label } : {} } }),
      );
    }
    const names = async (options: { labelSelector?: string; fieldSelector?: string }) =>
      (await api.list(maps, { namespace: "default", ...options }))
        .map((object) => object.metadata.name)
        .filter((name) => name !== "kube-root-ca.crt");
    for (const labelSelector of [
      "parity=x",
      "parity!=x",
      "parity in (x,y)",
      "parity notin (x)",
      "parity",
      "!parity",
      "parity,parity!=y",
    ]) {
      await record(names({ labelSelector }));
    }
    await record(names({ fieldSelector: "metadata.name=other" }));
  },
  async "a selecting watch sees objects enter and leave"(api, record) {
    const options = { namespace: "default", labelSelector: "parity=x" };
    const from = (await api.listPage(maps, options)).resourceVersion;
    await api.create(maps, aMap());
    await api.patch(maps, key, merge({ metadata: { labels: { parity: "x" } } }));
    await api.patch(maps, key, merge({ data: { a: "2" } }));
    await api.patch(maps, key, merge({ metadata: { labels: { parity: "z" } } }));
    await api.patch(maps, key, merge({ metadata: { labels: { parity: "x" } } }));
    await api.delete(maps, key);
    const stop = new AbortController();
    const seen: string[] = [];
    for await (const event of api.watch(maps, {
      ...options,
      resourceVersion: from,
      timeoutSeconds: 30,
      signal: stop.signal,
    })) {
      if (event.type === "BOOKMARK") continue;
      seen.push(event.type);
      if (seen.length === 5) break;
    }
    stop.abort();
    await record(Promise.resolve(seen.join(" ")));
  },
};

describe("the fake API server does what the real one does", () => {
  it.each(Object.keys(scenarios))("%s", async (name) => {
    const results: unknown[][] = [];
    for (const api of [createFakeKubeApi({ clock: createFakeClock() }), real]) {
      const outcomes: unknown[] = [];
      await scenarios[name]?.(api, async (step) => void outcomes.push(await outcome(step)));
      results.push(outcomes);
      await clean(api);
    }
    expect(results[0]?.length).toBeGreaterThan(0);
    expect(results[0]).toEqual(results[1]);
  });
});

async function clean(api: KubeClient): Promise<void> {
  for (const name of ["it", "other", "third"])
    await api.delete(maps, { namespace: "default", name }).catch(() => undefined);
  await api.delete(budgets, key).catch(() => undefined);
}
