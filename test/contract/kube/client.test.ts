import { readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type ControlPlane, startControlPlane } from "../../../local/control-plane/control-plane.ts";
import type { ConfigMap, Pod } from "../../../src/api/generated/kubernetes.ts";
import { createKubeApi } from "../../../src/kube/create-kube-api.ts";
import type { KubeClient } from "../../../src/kube/kube-client.ts";
import { loadKubeconfigConnection } from "../../../src/kube/kubeconfig.ts";
import { patchStatus } from "../../../src/kube/patch-status.ts";
import { resources } from "../../../src/kube/resources.ts";
import { type FaultyProxy, startFaultyProxy } from "./faulty-proxy.ts";

let controlPlane: ControlPlane;
let proxy: FaultyProxy;
/** Straight to the server, over TLS with a client certificate. */
let direct: KubeClient;
/** Through the proxy. */
let api: KubeClient;
let count = 0;

beforeAll(async () => {
  controlPlane = await startControlPlane();
  proxy = await startFaultyProxy(controlPlane);
  direct = createKubeApi(loadKubeconfigConnection(controlPlane.kubeconfig), {
    requestsPerSecond: 5_000,
    requestBurst: 5_000,
  });
  api = createKubeApi(proxy.connection, { requestTimeoutMs: 5_000 });
});
afterEach(() => {
  proxy.misbehave(undefined);
  proxy.seen.length = 0;
});
afterAll(async () => {
  await Promise.all([direct?.close(), api?.close()]);
  await proxy?.stop();
  await controlPlane?.stop();
});

const aConfigMap = (data: Record<string, string> = { a: "1" }): ConfigMap => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { namespace: "default", name: `map-${++count}` },
  data,
});
const keyOf = (object: ConfigMap | Pod) => ({ namespace: "default", name: object.metadata.name ?? "" });

async function aPod(): Promise<Pod> {
  return direct.create(resources.pods, {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { namespace: "default", name: `pod-${++count}` },
    spec: { containers: [{ name: "c", image: "example.test/none" }] },
  });
}

describe("connections", () => {
  it("reach the server by certificate and by token, and are refused with the wrong authority", async () => {
    expect(await direct.serverVersion()).toMatch(/^v1\.\d+/);
    const ca = readFileSync(controlPlane.caFile, "utf8");
    const byToken = createKubeApi({ server: controlPlane.url, ca, token: () => controlPlane.token });
    expect((await byToken.get(resources.namespaces, { name: "default" })).metadata.name).toBe("default");
    await byToken.close();
    const anonymous = createKubeApi({ server: controlPlane.url, ca });
    await expect(anonymous.list(resources.secrets)).rejects.toMatchObject({ kind: "forbidden" });
    await anonymous.close();
    const distrusting = createKubeApi({ server: controlPlane.url, token: () => controlPlane.token });
    const write = distrusting.create(resources.configMaps, aConfigMap());
    await expect(write).rejects.toMatchObject({ kind: "unavailable", outcomeUnknown: false });
    await distrusting.close();
  });

  it("read a token anew when the server refuses the old one", async () => {
    const asked: boolean[] = [];
    const token = (options?: { fresh?: boolean }) => {
      asked.push(options?.fresh ?? false);
      return options?.fresh ? controlPlane.token : "expired";
    };
    const client = createKubeApi({ server: controlPlane.url, ca: readFileSync(controlPlane.caFile, "utf8"), token });
    await client.create(resources.configMaps, aConfigMap());
    expect(asked).toEqual([false, true]);
    await client.close();
  });
});

describe("reads and writes", () => {
  it("create, read, update, patch and delete", async () => {
    const created = await api.create(resources.configMaps, aConfigMap());
    const key = keyOf(created);
    const updated = await api.update(resources.configMaps, { ...created, data: { a: "2" } });
    const merged = await api.patch(resources.configMaps, key, { type: "merge", body: { data: { b: "3" } } });
    expect(merged.data).toEqual({ a: "2", b: "3" });
    const patched = await api.patch(resources.configMaps, key, {
      type: "json",
      body: [{ op: "replace", path: "/data/a", value: "4" }],
    });
    expect(patched.data).toEqual({ a: "4", b: "3" });
    expect(updated.metadata.uid).toBe(created.metadata.uid);
    await api.delete(resources.configMaps, key);
    await expect(api.get(resources.configMaps, key)).rejects.toMatchObject({ kind: "notFound" });
  });

  it("classify what the server refuses", async () => {
    const created = await api.create(resources.configMaps, aConfigMap());
    const key = keyOf(created);
    await expect(api.create(resources.configMaps, { ...created, metadata: { ...key } })).rejects.toMatchObject({
      kind: "alreadyExists",
    });
    await api.patch(resources.configMaps, key, { type: "merge", body: { data: { b: "1" } } });
    await expect(api.update(resources.configMaps, created)).rejects.toMatchObject({ kind: "conflict" });
    const stale = { metadata: { resourceVersion: created.metadata.resourceVersion }, data: { c: "1" } };
    await expect(api.patch(resources.configMaps, key, { type: "merge", body: stale })).rejects.toMatchObject({
      kind: "conflict",
    });
    await expect(api.delete(resources.configMaps, key, { uid: "another" })).rejects.toMatchObject({ kind: "conflict" });
    await expect(
      api.delete(resources.configMaps, key, { resourceVersion: created.metadata.resourceVersion ?? "" }),
    ).rejects.toMatchObject({ kind: "conflict" });
    await expect(
      api.create(resources.configMaps, { ...aConfigMap(), metadata: { namespace: "default", name: "NOT VALID" } }),
    ).rejects.toMatchObject({ kind: "invalid" });
    await expect(api.delete(resources.configMaps, { namespace: "default", name: "absent" })).rejects.toMatchObject({
      kind: "notFound",
    });
  });

  it("do not mistake a kind that is not installed for a missing object", async () => {
    await expect(api.get(resources.clusters, { namespace: "default", name: "demo" })).rejects.toMatchObject({
      kind: "other",
      status: 404,
    });
    await expect(api.list(resources.clusters)).rejects.toMatchObject({ kind: "other" });
    expect(await api.serves(resources.clusters)).toBe(false);
    expect(await api.serves(resources.leases)).toBe(true);
  });

  it("apply on the server's side, with conflicts between managers", async () => {
    const wanted = aConfigMap();
    const key = keyOf(wanted);
    await api.patch(resources.configMaps, key, { type: "apply", body: wanted, fieldManager: "one" });
    const foreign = { ...wanted, data: { a: "theirs" } };
    await expect(
      api.patch(resources.configMaps, key, { type: "apply", body: foreign, fieldManager: "two" }),
    ).rejects.toMatchObject({
      kind: "conflict",
    });
    const forced = await api.patch(resources.configMaps, key, {
      type: "apply",
      body: foreign,
      fieldManager: "two",
      force: true,
    });
    expect(forced.data).toEqual({ a: "theirs" });
    const { data: _data, ...without } = wanted;
    const released = await api.patch(resources.configMaps, key, {
      type: "apply",
      body: without,
      fieldManager: "two",
      force: true,
    });
    expect(released.data).toBeUndefined();
  });

  it("retry a status patch on conflict and keep what others wrote", async () => {
    const pod = await aPod();
    const key = keyOf(pod);
    const setReason = (reason: string) => (current: Pod) => ({ ...current, status: { ...current.status, reason } });
    await patchStatus(api, resources.pods, key, setReason("Ours"));
    const theirs = { type: "merge", body: { status: { message: "theirs" } } } as const;
    await direct.patch(resources.pods, key, theirs, { subresource: "status" });
    // `pod` is outdated by two writes now: the first attempt conflicts, the second starts from a fresh read.
    const again = await patchStatus(api, resources.pods, key, setReason("Again"), { current: pod });
    expect(again.status).toMatchObject({ reason: "Again", message: "theirs" });
    expect(proxy.seen.filter((request) => request.method === "PATCH")).toHaveLength(3);
    await direct.delete(resources.pods, key, { gracePeriodSeconds: 0 });
  });
});

describe("faults on the way", () => {
  it("repeat a read after 429, and after a connection that broke", async () => {
    const created = await api.create(resources.configMaps, aConfigMap());
    let faults = 0;
    proxy.misbehave((request) => {
      if (request.method !== "GET" || faults > 1) return undefined;
      return faults++ === 0 ? { kind: "reset" } : { kind: "answer", status: 429, headers: { "retry-after": "1" } };
    });
    const started = performance.now();
    expect((await api.get(resources.configMaps, keyOf(created))).data).toEqual({ a: "1" });
    expect(performance.now() - started).toBeGreaterThan(900);
  });

  it.each([
    ["answers 500", { kind: "answer", status: 500 }, true],
    ["answers 429", { kind: "answer", status: 429 }, false],
    ["breaks the connection", { kind: "reset" }, true],
    ["never answers", { kind: "hang" }, true],
    ["cuts the answer", { kind: "truncate", bytes: 40 }, true],
  ] as const)("send a write only once when the far side %s", async (_name, misbehaviour, outcomeUnknown) => {
    proxy.misbehave(() => misbehaviour);
    const object = aConfigMap();
    await expect(api.create(resources.configMaps, object)).rejects.toMatchObject({
      kind: "unavailable",
      outcomeUnknown,
    });
    expect(proxy.seen).toHaveLength(1);
  });

  it("tell that a write may have been done when its answer is lost, and it was", async () => {
    proxy.misbehave(() => ({ kind: "loseAnswer" }));
    const object = aConfigMap();
    await expect(api.create(resources.configMaps, object)).rejects.toMatchObject({ outcomeUnknown: true });
    expect((await direct.get(resources.configMaps, keyOf(object))).data).toEqual({ a: "1" });
  });

  it("tell that a write was not done when nobody listens", async () => {
    const nowhere = createKubeApi({ server: "http://127.0.0.1:9" });
    await expect(nowhere.create(resources.configMaps, aConfigMap())).rejects.toMatchObject({ outcomeUnknown: false });
    await nowhere.close();
  });

  it("never take a failure for absence", async () => {
    const created = await api.create(resources.configMaps, aConfigMap());
    for (const fault of [
      { kind: "answer", status: 500 },
      { kind: "answer", status: 404, body: "404 page not found" },
      { kind: "answer", status: 404, body: "<html>" },
      { kind: "hang" },
    ] as const) {
      proxy.misbehave(() => fault);
      const error = await api
        .get(resources.configMaps, keyOf(created), { timeoutMs: 500 })
        .catch((failure: unknown) => failure);
      expect(error).not.toMatchObject({ kind: "notFound" });
      expect(error).toMatchObject({ name: "KubeError" });
    }
  });
});

describe("lists", () => {
  it("gather ten thousand objects page by page, within a bounded time", async () => {
    await direct.create(resources.namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name: "many" } });
    const names = Array.from({ length: 10_000 }, (_, index) => `object-${String(index).padStart(5, "0")}`);
    const creator = async () => {
      for (let name = names.pop(); name; name = names.pop()) {
        await direct.create(resources.configMaps, {
          apiVersion: "v1",
          kind: "ConfigMap",
          metadata: { namespace: "many", name },
        });
      }
    };
    await Promise.all(Array.from({ length: 32 }, creator));
    const started = performance.now();
    const listed = await api.list(resources.configMaps, { namespace: "many" });
    expect(new Set(listed.map((object) => object.metadata.name)).size).toBe(10_000);
    expect(listed[0]).toMatchObject({ apiVersion: "v1", kind: "ConfigMap" });
    expect(proxy.seen).toHaveLength(20);
    expect(performance.now() - started).toBeLessThan(15_000);
    expect(
      await api.list(resources.configMaps, { namespace: "many", fieldSelector: "metadata.name=object-00007" }),
    ).toHaveLength(1);
  }, 180_000);
});
