import { describe, expect, it } from "vitest";
import type { Pod } from "../../../src/api/generated/kubernetes.ts";
import { combineStores } from "../../../src/kube/combined-store.ts";
import type { ListWatch } from "../../../src/kube/kube-client.ts";
import { resources } from "../../../src/kube/resources.ts";
import { createStore, type StoreOptions } from "../../../src/kube/store.ts";
import type { StoreEvent } from "../../../src/ports/kube-api.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createFakeKubeApi, fault } from "../../support/fake-kube-api.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { createSeededRandom } from "../../support/seeded-random.ts";

const aPod = (name: string, labels: Record<string, string> = {}, namespace = "ns"): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace, labels, managedFields: [{ manager: "x" }] },
  spec: { containers: [] },
});

function aStore(options: Partial<StoreOptions<Pod>> = {}) {
  const clock = createFakeClock();
  const api = createFakeKubeApi({ clock });
  const logs = captureLogs();
  const random = createSeededRandom();
  const store = createStore(api, resources.pods, { logger: logs.logger, clock, random, ...options });
  const events: string[] = [];
  store.subscribe((event: StoreEvent<Pod>) => void events.push(`${event.type} ${event.object.metadata.name}`));
  const stop = new AbortController();
  return { clock, api, logs, store, events, stop, start: () => store.run(stop.signal) };
}

describe("store", () => {
  it("lists, then follows changes, and drops what nobody needs", async () => {
    const { clock, api, store, events, stop, start } = aStore();
    api.seed(resources.pods, aPod("a"));
    expect(store.staleForMs()).toBe(Number.POSITIVE_INFINITY);
    const running = start();
    await store.synced();
    await clock.settle();
    const b = await api.create(resources.pods, aPod("b"));
    await api.update(resources.pods, { ...b, metadata: { ...b.metadata, labels: { x: "y" } } });
    await api.delete(resources.pods, { namespace: "ns", name: "a" });
    await clock.settle();
    expect(events).toEqual(["added a", "added b", "updated b", "deleted a"]);
    expect(store.list().map((pod) => pod.metadata.name)).toEqual(["b"]);
    expect(store.get({ namespace: "ns", name: "b" })?.metadata.managedFields).toBeUndefined();
    expect(store.staleForMs()).toBe(0);
    stop.abort();
    await running;
    expect(clock.sleeping).toBe(0);
  });

  it("loses nothing when watches break and history is gone", async () => {
    const { clock, api, store, events, stop, start } = aStore();
    for (const name of ["a", "b", "c"]) api.seed(resources.pods, aPod(name));
    const running = start();
    await store.synced();
    await clock.settle();
    api.intercept(() => fault("unavailable"));
    api.breakWatches();
    await clock.advance(30_000);
    api.intercept(undefined);
    await api.delete(resources.pods, { namespace: "ns", name: "b" });
    api.seed(resources.pods, aPod("d"));
    api.compact();
    await clock.advance(10_000);
    expect(events.slice(3).sort()).toEqual(["added d", "deleted b"]);
    stop.abort();
    await running;
  });

  it.each([
    ["connections are refused", () => fault("unavailable")],
    ["everything is 500", () => fault("unavailable", { status: 500 })],
    ["every version is gone", () => fault("gone")],
    ["access is forbidden", () => fault("forbidden")],
  ])("sends at most 30 requests a minute while %s", async (_name, decide) => {
    const { clock, api, store, stop, start } = aStore();
    const running = start();
    await store.synced();
    await clock.settle();
    api.intercept(decide);
    api.breakWatches();
    const times: number[] = [];
    for (let second = 0; second < 240; second++) {
      const before = api.requests.length;
      await clock.advance(1000);
      times.push(api.requests.length - before);
    }
    for (let start = 0; start + 60 <= times.length; start++) {
      const inMinute = times.slice(start, start + 60).reduce((sum, count) => sum + count, 0);
      expect(inMinute).toBeLessThanOrEqual(30);
    }
    // It must not give up either.
    expect(times.slice(-60).reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(8);
    stop.abort();
    await running;
  });

  it("does not exceed the pace when lists succeed and every watch breaks at once", async () => {
    const { clock, api, stop, start } = aStore();
    api.intercept((request) => (request.verb === "watch" ? fault("gone") : undefined));
    const running = start();
    await clock.advance(60_000);
    expect(api.requests.length).toBeLessThanOrEqual(30);
    expect(api.requests.filter((request) => request.verb === "list").length).toBeGreaterThan(5);
    stop.abort();
    await running;
  });

  it("gives up a silent watch and connects again", async () => {
    const { clock, api, store, events, stop, start } = aStore({ inactivityMs: 60_000 });
    const running = start();
    await store.synced();
    await clock.settle();
    expect(api.requests.filter((request) => request.verb === "watch")).toHaveLength(1);
    await clock.advance(59_000);
    expect(store.staleForMs()).toBe(59_000);
    api.seed(resources.pods, aPod("a"));
    await clock.advance(30_000);
    expect(api.requests.filter((request) => request.verb === "watch")).toHaveLength(1);
    await clock.advance(31_000);
    expect(api.requests.filter((request) => request.verb === "watch")).toHaveLength(2);
    expect(events).toEqual(["added a"]);
    stop.abort();
    await running;
  });

  it("reads its own writes at once and reports them once", async () => {
    const { clock, api, store, events, stop, start } = aStore({ labelSelector: "app=pg" });
    const running = start();
    await store.synced();
    await clock.settle();
    const created = await api.create(resources.pods, aPod("a", { app: "pg" }));
    store.observeWrite(created);
    expect(store.get({ namespace: "ns", name: "a" })).toBeDefined();
    store.observeWrite(await api.create(resources.pods, aPod("other", { app: "x" })));
    expect(store.get({ namespace: "ns", name: "other" })).toBeUndefined();
    await clock.settle();
    store.observeWrite(await api.update(resources.pods, { ...created, metadata: { ...created.metadata, labels: {} } }));
    await clock.settle();
    expect(events).toEqual(["added a", "deleted a"]);
    expect(created.metadata.managedFields).toBeDefined();
    stop.abort();
    await running;
  });

  it("goes on when a subscriber throws", async () => {
    const { clock, api, logs, store, events, stop, start } = aStore();
    store.subscribe(() => {
      throw new Error("mistake");
    });
    const late: string[] = [];
    const unsubscribe = store.subscribe((event) => void late.push(event.type));
    api.seed(resources.pods, aPod("a"));
    const running = start();
    await store.synced();
    unsubscribe();
    api.seed(resources.pods, aPod("b"));
    await clock.settle();
    expect(events).toEqual(["added a", "added b"]);
    expect(late).toEqual(["added"]);
    expect(logs.messages("error")).toEqual(["Subscriber failed", "Subscriber failed"]);
    stop.abort();
    await running;
  });

  it("rejects a wait for synchronisation that is aborted", async () => {
    const { store } = aStore();
    const stop = new AbortController();
    const waiting = store.synced(stop.signal);
    stop.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
  });

  it("takes pages as one list and shows nothing of a list that failed midway", async () => {
    const clock = createFakeClock();
    const pages = [
      { items: [aPod("a")], resourceVersion: "7", continue: "more" },
      { items: [aPod("b")], resourceVersion: "7" },
    ];
    let lists = 0;
    const source: ListWatch = {
      async listPage(_type, options) {
        lists++;
        if (lists === 2) throw fault("unavailable", { status: 500 }).error;
        return pages[options?.continue ? 1 : 0] as never;
      },
      async *watch(_type, options) {
        expect(options.resourceVersion).toBe("7");
        await new Promise((resolve) => options.signal?.addEventListener("abort", resolve, { once: true }));
      },
    };
    const store = createStore<Pod>(source, resources.pods, {
      logger: captureLogs().logger,
      clock,
      random: createSeededRandom(),
    });
    const stop = new AbortController();
    const running = store.run(stop.signal);
    await clock.settle();
    expect(store.list()).toEqual([]);
    await clock.advance(2000);
    expect(lists).toBe(4);
    expect(store.list()).toHaveLength(2);
    stop.abort();
    await running;
  });

  it("is part of a view over several namespaces", async () => {
    const clock = createFakeClock();
    const api = createFakeKubeApi({ clock });
    const options = { logger: captureLogs().logger, clock, random: createSeededRandom() };
    const parts = new Map(
      ["one", "two"].map((namespace) => [namespace, createStore(api, resources.pods, { ...options, namespace })]),
    );
    const stop = new AbortController();
    const running = [...parts.values()].map((part) => part.run(stop.signal));
    const all = combineStores(parts);
    const events: string[] = [];
    const unsubscribe = all.subscribe((event) => void events.push(event.object.metadata.namespace ?? ""));
    api.seed(resources.pods, aPod("a", {}, "one"));
    await all.synced();
    api.seed(resources.pods, aPod("a", {}, "two"));
    api.seed(resources.pods, aPod("a", {}, "three"));
    await clock.settle();
    expect(events).toEqual(["one", "two"]);
    expect(all.list()).toHaveLength(2);
    expect(all.list("two")).toHaveLength(1);
    expect(all.list("three")).toEqual([]);
    expect(all.get({ namespace: "one", name: "a" })).toBeDefined();
    expect(all.staleForMs()).toBe(0);
    unsubscribe();
    stop.abort();
    await Promise.all(running);
  });
});
