import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type ControlPlane, startControlPlane } from "../../../local/control-plane/control-plane.ts";
import type { ConfigMap } from "../../../src/api/generated/kubernetes.ts";
import { createKubeApi } from "../../../src/kube/create-kube-api.ts";
import type { KubeClient } from "../../../src/kube/kube-client.ts";
import { loadKubeconfigConnection } from "../../../src/kube/kubeconfig.ts";
import { resources } from "../../../src/kube/resources.ts";
import { createStore, type RunnableStore, type StoreOptions } from "../../../src/kube/store.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { type FaultyProxy, type Misbehaviour, type SeenRequest, startFaultyProxy } from "./faulty-proxy.ts";

let controlPlane: ControlPlane;
let proxy: FaultyProxy;
let direct: KubeClient;
let api: KubeClient;
let spaces = 0;
const running: { stop: AbortController; ended: Promise<void> }[] = [];

beforeAll(async () => {
  controlPlane = await startControlPlane();
  proxy = await startFaultyProxy(controlPlane);
  direct = createKubeApi(loadKubeconfigConnection(controlPlane.kubeconfig), {
    requestsPerSecond: 5_000,
    requestBurst: 5_000,
  });
  api = createKubeApi(proxy.connection);
});
afterEach(async () => {
  proxy.misbehave(undefined);
  for (const { stop, ended } of running.splice(0)) {
    stop.abort();
    await ended;
  }
  proxy.seen.length = 0;
});
afterAll(async () => {
  await Promise.all([direct?.close(), api?.close()]);
  await proxy?.stop();
  await controlPlane?.stop();
});

interface Mirror {
  namespace: string;
  store: RunnableStore<ConfigMap>;
  /** What a subscriber knows: name to version. */
  known: Map<string, string>;
  story: string[];
  put(name: string, data?: Record<string, string>): Promise<ConfigMap>;
  remove(name: string): Promise<void>;
  /** Waits until the subscriber knows exactly what the server holds. */
  agrees(timeoutMs?: number): Promise<void>;
}

async function aMirror(options: Partial<StoreOptions<ConfigMap>> = {}): Promise<Mirror> {
  const namespace = `space-${++spaces}`;
  await direct.create(resources.namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  const store = createStore(api, resources.configMaps, {
    namespace,
    logger: captureLogs().logger,
    clock: systemClock,
    ...options,
  });
  const known = new Map<string, string>();
  const story: string[] = [];
  store.subscribe(({ type, object }) => {
    const name = object.metadata.name ?? "";
    story.push(`${type} ${name}`);
    expect(known.has(name)).toBe(type !== "added");
    if (type === "deleted") known.delete(name);
    else known.set(name, object.metadata.resourceVersion ?? "");
  });
  const stop = new AbortController();
  running.push({ stop, ended: store.run(stop.signal) });
  const truth = async () => {
    const objects = await direct.list(resources.configMaps, { namespace });
    return Object.fromEntries(objects.map(({ metadata }) => [metadata.name, metadata.resourceVersion]).sort());
  };
  return {
    namespace,
    store,
    known,
    story,
    put: async (name, data = {}) =>
      direct.patch(
        resources.configMaps,
        { namespace, name },
        { type: "apply", body: { metadata: { namespace, name }, data }, fieldManager: "test", force: true },
      ),
    remove: (name) => direct.delete(resources.configMaps, { namespace, name }),
    async agrees(timeoutMs = 15_000) {
      const expected = await truth();
      await waitFor(timeoutMs, () => expect(Object.fromEntries([...known].sort())).toEqual(expected));
    },
  };
}

async function waitFor(timeoutMs: number, check: () => void): Promise<void> {
  for (const end = performance.now() + timeoutMs; ; ) {
    try {
      check();
      return;
    } catch (error) {
      if (performance.now() > end) throw error;
      await systemClock.sleep(20);
    }
  }
}

/** Once for each listed request kind, then no more. */
function once(
  select: (request: SeenRequest) => boolean,
  fault: Misbehaviour,
): (request: SeenRequest) => Misbehaviour | undefined {
  let used = false;
  return (request) => {
    if (used || !select(request)) return undefined;
    used = true;
    return fault;
  };
}

const isWatch = (request: SeenRequest) => request.watch;
const isList = (request: SeenRequest) => !request.watch && request.method === "GET";
const expired = JSON.stringify({
  type: "ERROR",
  object: { kind: "Status", code: 410, reason: "Expired", message: "too old" },
});

describe("a store in front of a real server", () => {
  it("follows creations, changes and deletions, and reads its own writes", async () => {
    const mirror = await aMirror();
    await mirror.store.synced();
    await mirror.put("a");
    await mirror.put("b");
    await mirror.put("a", { x: "1" });
    await mirror.remove("b");
    await mirror.agrees();
    const own = await mirror.put("own", { x: "1" });
    mirror.store.observeWrite(own);
    expect(mirror.store.get({ namespace: mirror.namespace, name: "own" })?.data).toEqual({ x: "1" });
    await systemClock.sleep(300);
    expect(mirror.story.filter((line) => line.endsWith("own"))).toEqual(["added own"]);
    expect(mirror.store.get({ namespace: mirror.namespace, name: "own" })?.metadata.managedFields).toBeUndefined();
  });

  it("understands text that is split inside characters", async () => {
    proxy.misbehave((request) => (request.watch ? { kind: "split", bytes: 3 } : undefined));
    const mirror = await aMirror();
    await mirror.store.synced();
    const text = "Zürich 🐘 データベース ".repeat(50);
    await mirror.put("wide", { text });
    await mirror.agrees();
    expect(mirror.store.get({ namespace: mirror.namespace, name: "wide" })?.data).toEqual({ text });
  });

  it.each<[string, (request: SeenRequest) => boolean, Misbehaviour]>([
    ["the list is answered with 429", isList, { kind: "answer", status: 429, headers: { "retry-after": "1" } }],
    ["the list is answered with 500", isList, { kind: "answer", status: 500 }],
    ["the list is answered with 409", isList, { kind: "answer", status: 409 }],
    ["the list is cut off", isList, { kind: "truncate", bytes: 50 }],
    ["the list is answered by a proxy's page", isList, { kind: "answer", status: 200, body: "<html>" }],
    ["the list is answered with an empty object", isList, { kind: "answer", status: 200, body: "{}" }],
    ["the watch is answered with 429", isWatch, { kind: "answer", status: 429, headers: { "retry-after": "1" } }],
    ["the watch is answered with 500", isWatch, { kind: "answer", status: 500 }],
    [
      "the watch is answered with 410",
      isWatch,
      { kind: "answer", status: 410, body: JSON.stringify({ kind: "Status", reason: "Expired" }) },
    ],
    ["the watch reports 410 after it began", isWatch, { kind: "answer", status: 200, body: `${expired}\n` }],
    [
      "the watch ends within a line",
      isWatch,
      { kind: "answer", status: 200, body: '{"type":"ADDED","object":{"metadata"' },
    ],
    ["the watch carries an unreadable line", isWatch, { kind: "answer", status: 200, body: "nonsense\n" }],
    ["the watch is reset", isWatch, { kind: "reset" }],
    ["the watch is cut after some bytes", isWatch, { kind: "truncate", bytes: 700 }],
  ])("loses nothing when %s", async (_name, select, fault) => {
    proxy.misbehave(once(select, fault));
    const mirror = await aMirror();
    for (let i = 0; i < 6; i++) await mirror.put(`early-${i}`, { i: String(i) });
    await mirror.store.synced();
    for (let i = 0; i < 6; i++) await mirror.put(`late-${i}`, { i: String(i) });
    await mirror.remove("early-0");
    await mirror.put("early-1", { changed: "yes" });
    await mirror.agrees();
    expect(mirror.store.list()).toHaveLength(11);
  });

  it("notices a watch that fell silent, and catches up", async () => {
    proxy.misbehave(once(isWatch, { kind: "silence" }));
    const mirror = await aMirror({ inactivityMs: 2_000 });
    await mirror.store.synced();
    await mirror.put("unseen");
    await systemClock.sleep(1_000);
    expect(mirror.known.size).toBe(0);
    expect(mirror.store.staleForMs()).toBeGreaterThan(900);
    await mirror.agrees();
  });

  it("goes on from where it was when the server ends the watch, without listing again", async () => {
    const mirror = await aMirror({ watchMs: 5_500 });
    await mirror.store.synced();
    await systemClock.sleep(13_000);
    await mirror.put("after");
    await mirror.agrees();
    const mine = proxy.seen.filter((request) => request.path.includes(`/${mirror.namespace}/`));
    expect(mine.filter((request) => !request.watch)).toHaveLength(1);
    expect(mine.filter((request) => request.watch).length).toBeGreaterThanOrEqual(2);
  }, 60_000);

  it("lists page by page and is complete", async () => {
    const mirror = await aMirror();
    await mirror.store.synced();
    for (let i = 0; i < 25; i++) await mirror.put(`p-${i}`);
    const paged = createStore(api, resources.configMaps, {
      namespace: mirror.namespace,
      logger: captureLogs().logger,
      clock: systemClock,
      pageSize: 4,
    });
    const stop = new AbortController();
    running.push({ stop, ended: paged.run(stop.signal) });
    await paged.synced();
    expect(paged.list()).toHaveLength(25);
  });
});

describe("an API server that goes away", () => {
  it("for a minute: nothing is lost, and at most 30 requests go out per resource", async () => {
    const mirrors = [await aMirror(), await aMirror()];
    for (const mirror of mirrors) {
      await mirror.store.synced();
      for (let i = 0; i < 20; i++) await mirror.put(`before-${i}`);
      await mirror.agrees();
    }
    await controlPlane.stopApiServer("kill");
    try {
      const away = performance.now();
      await systemClock.sleep(60_000);
      const during = proxy.seen.filter((request) => request.at >= away);
      for (const mirror of mirrors) {
        const mine = during.filter((request) => request.path.includes(`/${mirror.namespace}/`));
        expect(mine.length).toBeGreaterThanOrEqual(8);
        expect(mine.length).toBeLessThanOrEqual(30);
        // What was known stays readable, and its age can be seen.
        expect(mirror.store.list()).toHaveLength(20);
        expect(mirror.store.staleForMs()).toBeGreaterThan(50_000);
      }
    } finally {
      await controlPlane.startApiServer();
    }
    const back = performance.now();
    for (const mirror of mirrors) {
      await mirror.remove("before-0");
      await mirror.put("before-1", { changed: "yes" });
      await mirror.put("after");
      await mirror.agrees();
      expect(mirror.story.filter((line) => line.startsWith("deleted"))).toEqual(["deleted before-0"]);
      expect(mirror.store.list()).toHaveLength(20);
    }
    expect(performance.now() - back).toBeLessThan(15_000);
  }, 180_000);

  it("gets the server's own 410 after its restart, for a version from before", async () => {
    const watch = direct.watch(resources.configMaps, {
      namespace: "default",
      resourceVersion: "1",
      timeoutSeconds: 10,
    });
    await expect(watch.next()).rejects.toMatchObject({ kind: "gone" });
  });

  it("behind a front end that answers 503 to everything: the pace holds and nothing is lost", async () => {
    const mirror = await aMirror();
    await mirror.store.synced();
    await mirror.put("before");
    await mirror.agrees();
    proxy.misbehave(() => ({ kind: "answer", status: 503 }));
    proxy.breakConnections();
    const away = performance.now();
    await mirror.remove("before");
    await mirror.put("meanwhile");
    await systemClock.sleep(20_000);
    // A third of a minute may use the burst and a third of the steady pace at most.
    expect(proxy.seen.filter((request) => request.at >= away).length).toBeLessThanOrEqual(17);
    proxy.misbehave(undefined);
    await mirror.agrees();
    expect(mirror.story).toEqual(["added before", "deleted before", "added meanwhile"]);
  }, 60_000);
});
