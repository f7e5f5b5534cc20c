import { describe, expect, it } from "vitest";
import type { ConfigMap } from "../../../src/api/generated/kubernetes.ts";
import { createKubeApi } from "../../../src/kube/create-kube-api.ts";
import type { HttpRequest, HttpTransport } from "../../../src/kube/http-transport.ts";
import { createRequestCounts } from "../../../src/kube/request-counts.ts";
import { resources } from "../../../src/kube/resources.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createSeededRandom } from "../../support/seeded-random.ts";

type Answer = { status?: number; body?: unknown; retryAfter?: string; error?: Error; hang?: boolean };

function aClient(answers: Answer[]) {
  const clock = createFakeClock();
  const sent: (HttpRequest & { freshToken: boolean })[] = [];
  const transport: HttpTransport = {
    async send(request, options) {
      sent.push({ ...request, freshToken: options?.freshToken ?? false });
      const answer = answers.shift() ?? {};
      if (answer.error) throw answer.error;
      if (answer.hang) {
        await new Promise((_, reject) =>
          request.signal.addEventListener("abort", () => reject(new Error("aborted")), { once: true }),
        );
      }
      const text = typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body ?? { metadata: {} });
      return {
        status: answer.status ?? 200,
        retryAfter: answer.retryAfter,
        text: async () => text,
        body: (async function* () {
          yield Buffer.from(text);
        })(),
      };
    },
    close: async () => undefined,
  };
  const counts = createRequestCounts();
  const options = { clock, random: createSeededRandom(), transport, counts };
  const api = createKubeApi({ server: "https://x:6443/prefix" }, options);
  return { clock, sent, api, counts };
}

const key = { namespace: "ns", name: "a" };
const notFound = { kind: "Status", reason: "NotFound", details: { name: "a" }, message: "gone" };

describe("requests", () => {
  it("are counted by method, host and answer, repetitions and failures too", async () => {
    const failure = new Error("reset");
    const { api, clock, counts } = aClient([{}, { status: 429, retryAfter: "1" }, {}, { error: failure }]);
    const object: ConfigMap = { apiVersion: "v1", kind: "ConfigMap", metadata: key };
    await api.create(resources.configMaps, object);
    const reading = api.get(resources.configMaps, key);
    await clock.advance(10_000);
    await reading;
    await expect(api.create(resources.configMaps, object)).rejects.toThrow("reset");
    const host = "x:6443";
    expect(counts.list()).toEqual([
      { method: "POST", host, code: "200", total: 1 },
      { method: "GET", host, code: "429", total: 1 },
      { method: "GET", host, code: "200", total: 1 },
      { method: "POST", host, code: "<error>", total: 1 },
    ]);
  });

  it("address objects and subresources, and carry the right types", async () => {
    const { sent, api } = aClient([]);
    const object: ConfigMap = { apiVersion: "v1", kind: "ConfigMap", metadata: { ...key, resourceVersion: "5" } };
    await api.get(resources.clusters, key);
    await api.create(resources.configMaps, object);
    await api.update(resources.configMaps, object);
    await api.patch(resources.clusters, key, { type: "merge", body: { status: {} } }, { subresource: "status" });
    await api.patch(resources.clusters, key, { type: "json", body: [] });
    await api.patch(
      resources.nodes,
      { name: "n1" },
      { type: "apply", body: { metadata: {} }, fieldManager: "cnpg", force: true },
    );
    await api.delete(resources.pods, key, {
      uid: "u",
      resourceVersion: "7",
      propagation: "Foreground",
      gracePeriodSeconds: 0,
    });
    expect(sent.map(({ method, path, contentType, query }) => [method, path, contentType, query])).toEqual([
      ["GET", "/apis/postgresql.cnpg.io/v1/namespaces/ns/clusters/a", undefined, undefined],
      ["POST", "/api/v1/namespaces/ns/configmaps", undefined, undefined],
      ["PUT", "/api/v1/namespaces/ns/configmaps/a", undefined, undefined],
      ["PATCH", "/apis/postgresql.cnpg.io/v1/namespaces/ns/clusters/a/status", "application/merge-patch+json", {}],
      ["PATCH", "/apis/postgresql.cnpg.io/v1/namespaces/ns/clusters/a", "application/json-patch+json", {}],
      ["PATCH", "/api/v1/nodes/n1", "application/apply-patch+yaml", { fieldManager: "cnpg", force: "true" }],
      ["DELETE", "/api/v1/namespaces/ns/pods/a", undefined, undefined],
    ]);
    expect(sent[5]?.body).toEqual({ apiVersion: "v1", kind: "Node", metadata: {} });
    expect(sent[6]?.body).toEqual({
      apiVersion: "v1",
      kind: "DeleteOptions",
      propagationPolicy: "Foreground",
      preconditions: { uid: "u", resourceVersion: "7" },
      gracePeriodSeconds: 0,
    });
  });

  it("never address a collection by a missing name", async () => {
    const { sent, api } = aClient([]);
    await expect(api.delete(resources.pods, { namespace: "ns", name: "" })).rejects.toThrow("without a name");
    await expect(api.get(resources.pods, { name: "a" })).rejects.toThrow("without a namespace");
    expect(sent).toEqual([]);
  });

  it("repeat a read that was asked to wait, and only as long as the bound allows", async () => {
    const { clock, sent, api } = aClient([
      { status: 429, retryAfter: "2" },
      { status: 429, retryAfter: "1" },
      { body: { metadata: { name: "a" } } },
    ]);
    const reading = api.get(resources.pods, key);
    await clock.advance(5_000);
    expect((await reading).metadata.name).toBe("a");
    expect(sent).toHaveLength(3);
    const late = aClient([{ status: 429, retryAfter: "3600" }]);
    await expect(late.api.get(resources.pods, key)).rejects.toMatchObject({
      kind: "unavailable",
      retryAfterMs: 3_600_000,
    });
    expect(late.sent).toHaveLength(1);
  });

  it("never repeat a write, whatever the server asks for", async () => {
    const { sent, api } = aClient([{ status: 429, retryAfter: "1" }]);
    await expect(api.patch(resources.pods, key, { type: "merge", body: {} })).rejects.toMatchObject({
      status: 429,
      outcomeUnknown: false,
    });
    expect(sent).toHaveLength(1);
  });

  it("repeat a read once when its idle connection had been closed", async () => {
    const stale = Object.assign(new Error("other side closed"), { code: "UND_ERR_SOCKET" });
    const { clock, sent, api } = aClient([{ error: stale }, {}]);
    const reading = api.get(resources.pods, key);
    await clock.advance(1_000);
    await reading;
    expect(sent).toHaveLength(2);
    const twice = aClient([{ error: stale }, { error: stale }, {}]);
    const failing = expect(twice.api.get(resources.pods, key)).rejects.toMatchObject({ kind: "unavailable" });
    await twice.clock.advance(1_000);
    await failing;
  });

  it("end at their bound, and say whether a write may have been done", async () => {
    const { clock, api } = aClient([{ hang: true }, { hang: true }]);
    const reading = expect(api.get(resources.pods, key)).rejects.toMatchObject({
      kind: "unavailable",
      outcomeUnknown: false,
      message: "get pods ns/a: no answer within 30000 ms",
    });
    const writing = expect(api.delete(resources.pods, key)).rejects.toMatchObject({ outcomeUnknown: true });
    await clock.advance(30_000);
    await reading;
    await writing;
  });

  it("end when the caller gives up, and are not even sent when it had done so before", async () => {
    const { clock, sent, api } = aClient([{ hang: true }]);
    const stop = new AbortController();
    const writing = expect(
      api.create(resources.configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata: key }, { signal: stop.signal }),
    ).rejects.toMatchObject({
      outcomeUnknown: true,
    });
    await clock.settle();
    stop.abort(new Error("stopping"));
    await writing;
    await expect(api.get(resources.pods, key, { signal: stop.signal })).rejects.toThrow("before it was sent");
    expect(sent).toHaveLength(1);
    expect(clock.sleeping).toBe(0);
  });

  it("read the token anew when it is refused", async () => {
    const { sent, api } = aClient([{ status: 401 }, {}]);
    await api.delete(resources.pods, key);
    expect(sent.map((request) => request.freshToken)).toEqual([false, true]);
  });

  it("do not take a proxy's page for an object", async () => {
    const { api } = aClient([{ body: "<html>" }]);
    await expect(api.get(resources.pods, key)).rejects.toMatchObject({ kind: "unavailable" });
  });
});

describe("list", () => {
  const page = (names: string[], next?: string) => ({
    body: {
      metadata: { resourceVersion: "9", ...(next ? { continue: next } : {}) },
      items: names.map((name) => ({ metadata: { name } })),
    },
  });

  it("gathers all pages and completes kinds", async () => {
    const { sent, api } = aClient([page(["a"], "token"), page(["b"])]);
    const items = await api.list(resources.pods, { namespace: "ns", labelSelector: "app=x" });
    expect(items).toEqual([
      { apiVersion: "v1", kind: "Pod", metadata: { name: "a" } },
      { apiVersion: "v1", kind: "Pod", metadata: { name: "b" } },
    ]);
    expect(sent[1]?.query).toEqual({
      labelSelector: "app=x",
      fieldSelector: undefined,
      limit: "500",
      continue: "token",
    });
  });

  it("asks without pages when the snapshot behind them is gone", async () => {
    const { sent, api } = aClient([
      page(["a"], "token"),
      { status: 410, body: { kind: "Status", reason: "Expired" } },
      page(["a", "b"]),
    ]);
    expect(await api.list(resources.pods)).toHaveLength(2);
    expect(sent[2]?.query).toMatchObject({ limit: undefined, continue: undefined });
  });

  it("never invents an empty list", async () => {
    const { api } = aClient([{ body: {} }]);
    await expect(api.list(resources.pods)).rejects.toMatchObject({ kind: "unavailable" });
  });
});

describe("watch", () => {
  const lines = (...events: unknown[]) => ({ body: events.map((event) => `${JSON.stringify(event)}\n`).join("") });
  const options = { resourceVersion: "5", timeoutSeconds: 300 };

  it("gives events and bookmarks", async () => {
    const pod = { metadata: { name: "a", resourceVersion: "6" } };
    const { sent, api } = aClient([
      lines({ type: "ADDED", object: pod }, { type: "BOOKMARK", object: { metadata: { resourceVersion: "8" } } }),
    ]);
    const events = [];
    for await (const event of api.watch(resources.pods, options)) events.push(event);
    expect(events).toEqual([
      { type: "ADDED", object: pod },
      { type: "BOOKMARK", resourceVersion: "8" },
    ]);
    expect(sent[0]?.query).toMatchObject({
      watch: "true",
      allowWatchBookmarks: "true",
      resourceVersion: "5",
      timeoutSeconds: "300",
    });
  });

  it.each([
    ["410 inside a 200", lines({ type: "ERROR", object: { kind: "Status", code: 410, reason: "Expired" } }), "gone"],
    ["410 as the answer", { status: 410, body: { kind: "Status", reason: "Expired" } }, "gone"],
    ["a line that is cut off", { body: '{"type":"ADDED","obj' }, "unavailable"],
    ["a line that is no JSON", { body: "oops\n" }, "unavailable"],
    ["an event of unknown type", lines({ type: "SURPRISE" }), "unavailable"],
    ["an answer of 500", { status: 500, body: "" }, "unavailable"],
  ])("fails on %s", async (_name, answer, kind) => {
    const { api } = aClient([answer]);
    const reading = async () => {
      for await (const event of api.watch(resources.pods, options)) expect(event).toBeUndefined();
    };
    await expect(reading()).rejects.toMatchObject({ kind });
  });

  it("gives up when the beginning takes too long", async () => {
    const { clock, api } = aClient([{ hang: true }]);
    const reading = expect(api.watch(resources.pods, options).next()).rejects.toThrow(
      "watch pods: no answer within 30000 ms",
    );
    await clock.advance(30_000);
    await reading;
  });
});

describe("discovery", () => {
  it("tells whether a kind is served, and fails when it cannot be told", async () => {
    const { api } = aClient([
      { body: { resources: [{ name: "podmonitors" }] } },
      { status: 404, body: "404 page not found" },
      { status: 500, body: "" },
      { body: { gitVersion: "v1.34.1" } },
    ]);
    expect(await api.serves(resources.podMonitors)).toBe(true);
    expect(await api.serves(resources.podMonitors)).toBe(false);
    await expect(api.serves(resources.podMonitors)).rejects.toMatchObject({ kind: "unavailable" });
    expect(await api.serverVersion()).toBe("v1.34.1");
  });

  it("does not take a missing object for a missing kind", async () => {
    const { api } = aClient([{ status: 404, body: notFound }]);
    await expect(api.get(resources.pods, key)).rejects.toMatchObject({ kind: "notFound" });
  });
});
